// A list that stays quick however long it is: filter, order and folders over all of it, elements only for what is seen.

import { h, put } from "./dom.js";
import { icon } from "./icons.js";
import { language, number, t } from "./language.js";
import { say } from "./messages.js";

const BEYOND = 8;
const kept = new Map();

/**
 * {element, show(items)}. `name` is what choices are kept under while the page is open; `of(item)` gives {key, text}, the
 * text being what the filter looks at; `sorts` are [name, compare], `groups` [name, folder of an item]; the first of each
 * is chosen at first. `row(item)` draws one, in a height that the style sheet fixes as --row.
 */
export function listing({ name, className, of, sorts, groups = [], row, actions = [] }) {
  const state = kept.get(name) ?? { filter: "", sort: sorts[0][0], group: groups[0]?.[0] ?? "", folded: new Set() };
  kept.set(name, state);
  const list = h("ul", { class: `rows ${className}`, "aria-label": t(`tab.${name}`) });
  const count = h("span", { class: "small muted count", role: "status" });
  const filter = h("input", {
    type: "search",
    class: "bare",
    value: state.filter,
    placeholder: t("list.filter"),
    "aria-label": t("list.filter"),
    autocomplete: "off",
    spellcheck: "false",
    dataset: { filter: name },
  });
  let items = [];
  let texts = new Map();
  let ordered = [];
  let lines = [];
  let tops = [0];
  let live = new Map();

  function order() {
    const compare = sorts.find(([one]) => one === state.sort)?.[1] ?? sorts[0][1];
    ordered = [...items].sort(compare);
    arrange();
  }

  /** What is left of the filter, with the folders between: every line that there is, drawn or not. */
  function arrange() {
    const words = plain(state.filter).split(/\s+/).filter(Boolean);
    const found =
      words.length === 0 ? ordered : ordered.filter((item) => words.every((word) => texts.get(item).includes(word)));
    const folderOf = groups.find(([one]) => one === state.group)?.[1];
    lines = folderOf === undefined ? found.map((item) => ({ item })) : foldered(found, folderOf, words.length > 0);
    put(
      count,
      found.length === items.length
        ? t("list.count", { n: number(items.length) })
        : t("list.some", { n: number(found.length), total: number(items.length) }),
    );
    put(list);
    live = new Map();
    measure();
  }

  function foldered(found, folderOf, open) {
    const folders = new Map();
    for (const item of found) {
      const folder = folderOf(item);
      if (!folders.has(folder)) folders.set(folder, []);
      folders.get(folder).push(item);
    }
    const inOrder = [...folders].sort(([one], [other]) => byName(one, other));
    return inOrder.flatMap(([folder, inside]) => {
      const shut = !open && state.folded.has(folder);
      return [{ folder, count: inside.length, shut }, ...(shut ? [] : inside.map((item) => ({ item })))];
    });
  }

  function measure() {
    const style = getComputedStyle(list);
    const [high, head] = ["--row", "--folder"].map((one) => parseFloat(style.getPropertyValue(one)) || 64);
    tops = [0];
    for (const line of lines) tops.push(tops[tops.length - 1] + ("folder" in line ? head : high));
    draw();
  }

  /** Elements for what is on the screen and a little beyond; those that stay are not touched, so that focus stays. */
  function draw() {
    const above = -list.getBoundingClientRect().top;
    const first = Math.max(0, lineAt(above) - BEYOND);
    const last = Math.min(lines.length, lineAt(above + window.innerHeight) + 1 + BEYOND);
    for (const [at, element] of live) {
      if (at >= first && at < last) continue;
      element.remove();
      live.delete(at);
    }
    let next = null;
    for (let at = last - 1; at >= first; at -= 1) {
      if (!live.has(at)) {
        live.set(at, element(lines[at], at));
        list.insertBefore(live.get(at), next);
      }
      next = live.get(at);
    }
    list.style.paddingTop = `${tops[Math.min(first, lines.length)]}px`;
    list.style.paddingBottom = `${tops[lines.length] - tops[Math.max(first, last)]}px`;
  }

  function lineAt(height) {
    let low = 0;
    let high = lines.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tops[middle + 1] <= height) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function element(line, at) {
    const place = { "aria-setsize": lines.length, "aria-posinset": at + 1 };
    if ("folder" in line) return h("li", { class: "folder", ...place }, folderHead(line));
    return h("li", place, row(line.item));
  }

  function folderHead({ folder, count: inside, shut }) {
    const toggle = () => {
      if (shut) state.folded.delete(folder);
      else state.folded.add(folder);
      arrange();
      list.querySelector(`[data-stop="${CSS.escape(`folder:${folder}`)}"]`)?.focus();
    };
    return h(
      "h2",
      {},
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          "aria-expanded": String(!shut),
          dataset: { stop: `folder:${folder}` },
          on: { click: toggle },
        },
        icon("folder"),
        h("span", { class: "name" }, folder || t("list.none")),
        h("span", { class: "small muted" }, number(inside)),
      ),
    );
  }

  function choice(key, label, names) {
    const select = h(
      "select",
      { class: "bare", "aria-label": label, title: label },
      names.map(([one]) => h("option", { value: one }, t(`list.${key}.${one}`))),
    );
    select.value = state[key];
    select.addEventListener("change", () => {
      state[key] = select.value;
      order();
    });
    return select;
  }

  filter.addEventListener("input", () => {
    state.filter = filter.value;
    arrange();
    say(count.textContent);
  });
  filter.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || filter.value === "") return;
    event.preventDefault();
    filter.value = state.filter = "";
    arrange();
  });
  list.addEventListener("click", () => (state.scrolled = window.scrollY));
  const seen = new AbortController();
  const whenShown = (act) => () => (list.isConnected ? act() : seen.abort());
  window.addEventListener("scroll", whenShown(draw), { passive: true, signal: seen.signal });
  window.addEventListener("resize", whenShown(measure), { signal: seen.signal });

  const tools = h(
    "div",
    { class: "tools", role: "group", "aria-label": t("list.tools") },
    filter,
    sorts.length > 1 && choice("sort", t("list.sort"), sorts),
    groups.length > 1 && choice("group", t("list.group"), groups),
    count,
    actions,
  );
  return {
    element: h("div", { class: "listing" }, tools, list),
    /** Shows these instead; call it when the element is in the page. */
    show(shown) {
      items = shown;
      texts = new Map(items.map((item) => [item, plain(of(item))]));
      order();
      // Back from one of them, the list is where it was left.
      if (state.scrolled) window.scrollTo(0, state.scrolled);
      state.scrolled = 0;
    },
  };
}

function plain(text) {
  return text.normalize("NFKC").toLowerCase();
}

let collator = null;
/** Names as people sort them in the language of the page: 2 before 10. */
export function byName(one, other) {
  if (collator?.[0] !== language())
    collator = [language(), new Intl.Collator(language() === "zh" ? "zh-CN" : "en", { numeric: true })];
  return collator[1].compare(one, other);
}

/** All of what an operation lists a page at a time; `page(offset)` resolves to some of it, and fewer than `size` end it. */
export async function everything(page, size) {
  const all = [];
  for (;;) {
    const some = await page(all.length);
    all.push(...some);
    if (some.length < size) return all;
  }
}
