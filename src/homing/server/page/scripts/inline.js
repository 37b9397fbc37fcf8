// What stands within a line of Markdown: emphasis, code, links. Everything a person wrote ends as a text node.

import { h } from "./dom.js";

const SAFE = new Set(["http:", "https:", "mailto:"]);
const PAIRS = [
  ["**", "strong"],
  ["__", "strong"],
  ["~~", "del"],
  ["*", "em"],
  ["_", "em"],
];
const LINK = /!?\[([^[\]\n]{0,500})\]\(\s*<?([^\s()<>]{1,2000})>?(?:\s+"[^"\n]{0,200}")?\s*\)/y;
const BARE = /https?:\/\/[^\s<>"'`，。；：、！？（）【】「」『』《》]{1,2000}/y;
const SPECIAL = /[\\`*_~[!h]/g;
const WORD = /[\p{L}\p{N}]/u;
const TRIES = 8;
const DEEPEST = 8;

/**
 * Nodes for `text`; `emit(from, to)` gives those of a stretch of it as it stands. Without `links` a link is its label.
 * `local(address, label, isPicture)` may make an element for an address that is not of the web.
 */
export function inline(text, emit, { links = true, local = () => null } = {}) {
  const hopeless = new Set();

  function within(from, to, depth) {
    const nodes = [];
    let written = from;
    let at = from;
    const take = (end, node) => {
      nodes.push(...emit(written, at), ...node);
      written = at = end;
    };
    while (at < to) {
      SPECIAL.lastIndex = at;
      const next = SPECIAL.exec(text);
      if (next === null || next.index >= to) break;
      at = next.index;
      const made = special(at, to, depth);
      if (made === null) at += 1;
      else take(...made);
    }
    at = to;
    take(to, []);
    return nodes;
  }

  /** [where it ends, its nodes], or null where a character is only itself. */
  function special(at, to, depth) {
    const character = text[at];
    if (character === "\\") return /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "") ? [at + 2, emit(at + 1, at + 2)] : null;
    if (character === "`") return code(at, to);
    if (character === "[" || character === "!") return link(at, to, depth);
    if (character === "h") return bare(at, to);
    return depth < DEEPEST ? paired(at, to, depth) : null;
  }

  function code(at, to) {
    const ticks = /`+/y;
    ticks.lastIndex = at;
    const run = ticks.exec(text)[0];
    const end = hopeless.has(run) ? -1 : text.indexOf(run, at + run.length);
    if (end < 0) hopeless.add(run);
    // A run without its end is itself, all of it: half of it would open something else.
    if (end < 0 || end >= to) return [at + run.length, emit(at, at + run.length)];
    return [end + run.length, [h("code", {}, emit(at + run.length, end))]];
  }

  function paired(at, to, depth) {
    const pair = PAIRS.find(([mark]) => text.startsWith(mark, at));
    if (pair === undefined) return null;
    const [mark, tag] = pair;
    const inside = at + mark.length;
    if (hopeless.has(mark) || /\s/.test(text[inside] ?? " ")) return null;
    if (mark[0] === "_" && WORD.test(text[at - 1] ?? "")) return null;
    let end = text.indexOf(mark, inside + 1);
    if (end < 0) hopeless.add(mark);
    for (let tried = 0; end >= 0 && end + mark.length <= to && tried < TRIES; tried += 1) {
      const after = text[end + mark.length] ?? "";
      const doubled = mark.length === 1 && (after === mark || text[end - 1] === mark);
      if (!/\s/.test(text[end - 1]) && !doubled && !(mark[0] === "_" && WORD.test(after)))
        return [end + mark.length, [h(tag, {}, within(inside, end, depth + 1))]];
      end = text.indexOf(mark, end + 1);
    }
    return null;
  }

  function link(at, to, depth) {
    LINK.lastIndex = at;
    const found = LINK.exec(text);
    if (found === null || LINK.lastIndex > to) return null;
    const end = LINK.lastIndex;
    const label = at + found[0].indexOf("[") + 1;
    const nodes =
      depth < DEEPEST ? within(label, label + found[1].length, depth + 1) : emit(label, label + found[1].length);
    const own = local(found[2], found[1], text[at] === "!");
    return [end, own === null ? anchor(found[2], nodes) : [own]];
  }

  function bare(at, to) {
    BARE.lastIndex = at;
    const found = BARE.exec(text)?.[0].replace(/[.,;:!?)\]]+$/, "");
    if (found === undefined || at + found.length > to) return null;
    return [at + found.length, anchor(found, emit(at, at + found.length))];
  }

  function anchor(address, nodes) {
    if (!links || !isSafe(address)) return nodes;
    return [h("a", { href: address, target: "_blank", rel: "noopener noreferrer nofollow" }, nodes)];
  }

  return within(0, text.length, 0);
}

/** Whether an address leads to a page or a mailbox, and not to a script or to somewhere within this page. */
function isSafe(address) {
  try {
    return SAFE.has(new URL(address).protocol);
  } catch {
    return false;
  }
}
