// Markdown as elements, made of text nodes only: headings, lists, code, quotes, tables, emphasis, links.

import { h } from "./dom.js";
import { merged, spansOf } from "./highlight.js";
import { inline } from "./inline.js";

const DEEPEST = 10;
const HEADING = /^ {0,3}(#{1,6})[ \t]+/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}>[ \t]?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])([ \t]+|$)/;
const DIVIDER = /^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const TASK = /^\[([ xX])\][ \t]+/;

/**
 * Elements for `text`. What lies in `marks` ([start, end] in units of the string) is marked; the largest heading has
 * `level`, and none is more than one step below the one before. Each block says as data-at where in the text it begins.
 * `local` is that of `inline`.
 */
export function markdown(text, { marks = [], level = 2, local } = {}) {
  const page = { text, marks: merged(marks), level, deepest: level - 1, smallest: 6, local };
  const lines = [];
  for (let at = 0; at <= text.length;) {
    const end = text.indexOf("\n", at) < 0 ? text.length : text.indexOf("\n", at);
    lines.push([at, text[end - 1] === "\r" && end > at ? end - 1 : end]);
    at = end + 1;
  }
  for (const [from, to] of lines) {
    const found = HEADING.exec(text.slice(from, Math.min(to, from + 12)));
    if (found !== null) page.smallest = Math.min(page.smallest, found[1].length);
  }
  return blocks(page, lines, 0);
}

/** A text on one line: what shapes blocks is left out, what stands within lines is drawn, links are only their labels. */
export function markdownLine(text, { words = [] } = {}) {
  const flat = text
    .split("\n")
    .filter((line) => !FENCE.test(line) && !RULE.test(line) && !(line.includes("|") && DIVIDER.test(line)))
    .map((line) =>
      line
        .replace(QUOTE, "")
        .replace(HEADING, "")
        .replace(ITEM, "")
        .replace(/^\||\|$/g, "")
        .trim(),
    )
    .filter(Boolean)
    .join(" ");
  const marks = merged(spansOf(flat, { words }));
  return inline(flat, (from, to) => marked(flat, from, to, marks), { links: false });
}

/** `lines` are [start, end] of what is left of each line within the quote or list it stands in. */
function blocks(page, lines, depth) {
  const made = [];
  const say = (at) => page.text.slice(...lines[at]);
  let at = 0;
  const whileLines = (test) => {
    const first = at;
    while (at < lines.length && test(say(at), at)) at += 1;
    return lines.slice(first, at);
  };
  const add = (element, [from]) => {
    element.dataset.at = from;
    made.push(element);
  };
  while (at < lines.length) {
    const line = say(at);
    const start = lines[at];
    if (line.trim() === "") {
      at += 1;
    } else if (HEADING.test(line)) {
      add(heading(page, line, start), start);
      at += 1;
    } else if (FENCE.test(line)) {
      const fence = FENCE.exec(line)[1];
      at += 1;
      const inside = whileLines((one) => !one.trimStart().startsWith(fence));
      at += 1;
      add(
        h(
          "pre",
          {},
          h(
            "code",
            {},
            inside.flatMap(([from, to]) => [marked(page.text, from, to, page.marks), "\n"]),
          ),
        ),
        start,
      );
    } else if (RULE.test(line)) {
      add(h("hr"), start);
      at += 1;
    } else if (QUOTE.test(line) && depth < DEEPEST) {
      const inside = whileLines((one) => QUOTE.test(one)).map(([from, to]) => [
        from + QUOTE.exec(page.text.slice(from, to))[0].length,
        to,
      ]);
      add(h("blockquote", {}, blocks(page, inside, depth + 1)), start);
    } else if (ITEM.test(line) && depth < DEEPEST) {
      add(list(), start);
    } else if (line.includes("|") && at + 1 < lines.length && say(at + 1).includes("|") && DIVIDER.test(say(at + 1))) {
      const head = lines[at];
      at += 2;
      add(
        table(
          page,
          head,
          whileLines((one) => one.includes("|")),
        ),
        start,
      );
    } else {
      const first = at;
      add(
        h(
          "p",
          {},
          flowing(
            page,
            whileLines((one, now) => now === first || !begins(one, depth)),
          ),
        ),
        start,
      );
    }
  }
  return made;

  function list() {
    const ordered = /\d/.test(ITEM.exec(say(at))[2]);
    const number = ordered ? parseInt(ITEM.exec(say(at))[2], 10) : 1;
    const items = [];
    while (
      at < lines.length &&
      ITEM.test(say(at)) &&
      /\d/.test(ITEM.exec(say(at))[2]) === ordered &&
      !RULE.test(say(at))
    ) {
      const [whole] = ITEM.exec(say(at));
      const room = whole.length;
      const first = [lines[at][0] + room, lines[at][1]];
      at += 1;
      const rest = whileLines((one, now) => {
        if (one.trim() === "") return now + 1 < lines.length && /^[ \t]{2,}\S/.test(say(now + 1));
        return /^[ \t]/.test(one) && one.search(/\S/) >= Math.min(room, 2);
      });
      const inside = rest.map(([from, to]) => [
        from + Math.min(room, Math.max(0, page.text.slice(from, to).search(/\S|$/))),
        to,
      ]);
      items.push(item(page, [first, ...inside], depth));
      if (at < lines.length && say(at).trim() === "" && ITEM.test(lines[at + 1] === undefined ? "" : say(at + 1)))
        at += 1;
    }
    return h(ordered ? "ol" : "ul", ordered && number !== 1 ? { start: number } : {}, items);
  }
}

/** A line that ends the paragraph before it. */
function begins(line, depth) {
  if (line.trim() === "" || HEADING.test(line) || FENCE.test(line) || RULE.test(line)) return true;
  return depth < DEEPEST && (QUOTE.test(line) || ITEM.test(line));
}

function heading(page, line, [from, to]) {
  const wanted = page.level + HEADING.exec(line)[1].length - page.smallest;
  page.deepest = Math.min(6, wanted, page.deepest + 1);
  const text = line.replace(/[ \t]+#+[ \t]*$/, "");
  const start = from + HEADING.exec(line)[0].length;
  return h(`h${page.deepest}`, {}, flowing(page, [[start, Math.max(start, Math.min(to, from + text.length))]]));
}

function item(page, lines, depth) {
  const task = TASK.exec(page.text.slice(...lines[0]));
  if (task !== null) lines[0] = [lines[0][0] + task[0].length, lines[0][1]];
  const inside = blocks(page, lines, depth + 1);
  // A line of its own needs no paragraph around it.
  const flat = inside[0]?.tagName === "P" ? [...inside[0].childNodes, ...inside.slice(1)] : inside;
  return h("li", {}, task !== null && (task[1] === " " ? "☐ " : "☑ "), flat);
}

function table(page, head, rows) {
  const cells = (tag, line) =>
    h(
      "tr",
      {},
      // A heading that says nothing is none.
      cellsOf(page.text, line).map((one) => h(one[0] < one[1] ? tag : "td", {}, flowing(page, [one]))),
    );
  return h(
    "table",
    {},
    h("thead", {}, cells("th", head)),
    h(
      "tbody",
      {},
      rows.map((line) => cells("td", line)),
    ),
  );
}

function cellsOf(text, [from, to]) {
  const found = [];
  let start = from;
  for (let at = from; at <= to; at += 1) {
    if (at < to && (text[at] !== "|" || text[at - 1] === "\\")) continue;
    const bare = text.slice(start, at);
    const before = bare.length - bare.trimStart().length;
    found.push([start + before, start + Math.max(before, bare.trimEnd().length)]);
    start = at + 1;
  }
  const isEmpty = ([one, other]) => one >= other;
  if (isEmpty(found[0])) found.shift();
  if (found.length > 1 && isEmpty(found[found.length - 1])) found.pop();
  return found;
}

/** The lines of one paragraph, joined, with what stands within them. */
function flowing(page, lines) {
  const text = lines.map(([from, to]) => page.text.slice(from, to)).join("\n");
  const emit = (from, to) => {
    const nodes = [];
    let at = 0;
    for (const [first, last] of lines) {
      const length = last - first;
      const start = Math.max(from, at);
      const end = Math.min(to, at + length);
      if (start < end) nodes.push(...marked(page.text, first + start - at, first + end - at, page.marks));
      if (from <= at + length && at + length < to) nodes.push("\n");
      at += length + 1;
    }
    return nodes;
  };
  return inline(text, emit, { local: page.local });
}

/** A stretch of a text, as it stands, with what is to be marked in it. */
function marked(text, from, to, marks) {
  const nodes = [];
  let at = from;
  for (const [first, last] of marks) {
    if (last <= at || first >= to) continue;
    if (first > at) nodes.push(text.slice(at, first));
    nodes.push(h("mark", {}, text.slice(Math.max(at, first), Math.min(to, last))));
    at = Math.min(to, last);
  }
  if (at < to) nodes.push(text.slice(at, to));
  return nodes;
}
