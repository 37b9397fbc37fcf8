// A document to be read: Markdown drawn, opened at a passage, which is marked.

import { h, put } from "./dom.js";
import { pageOf } from "./hits.js";
import { t } from "./language.js";
import { markdown } from "./markdown.js";

/** {element, show(text, {passage, parts}), find()}; `choose(at)` hears where in the text a block begins that is clicked. */
export function reading(choose) {
  const element = h("article", { class: "reading prose", tabindex: "0", "aria-label": t("documents.reading") });
  element.addEventListener("click", (event) => {
    const block = event.target.closest("[data-at]");
    if (block !== null && event.target.closest("a") === null && String(getSelection()) === "")
      choose(Number(block.dataset.at));
  });
  return {
    element,
    /** `passage` is [start, end] in units of the string, `parts` are {start, name}, the pages of a file. */
    show(text, { passage, parts = [] } = {}) {
      const drawn = markdown(text, { marks: passage === undefined ? [] : [passage] });
      put(element, withPages(drawn, parts));
    },
    /** Scrolls to what is marked, within the pane and the page. */
    find() {
      element.querySelector("mark")?.scrollIntoView({ block: "center" });
    },
  };
}

/** A line with the number of the page before the first block of each. */
function withPages(blocks, parts) {
  const made = [];
  let next = 0;
  for (const block of blocks) {
    const due = next;
    while (next < parts.length && parts[next].start <= Number(block.dataset.at)) next += 1;
    if (next > due) made.push(h("p", { class: "page-mark" }, pageOf(parts[next - 1].name)));
    made.push(block);
  }
  return made;
}
