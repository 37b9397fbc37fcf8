// Everything: what is in here while nothing is asked, hits of every source while something is.

import { closeDetail } from "../detail.js";
import { h, put } from "../dom.js";
import { putInExamples } from "../examples.js";
import { icon } from "../icons.js";
import { number, t } from "../language.js";
import { failure, tellDegraded, toast } from "../messages.js";
import { Results } from "../results.js";
import { addressOf } from "../route.js";

const SOURCES = ["skills", "documents", "memory", "devices"];
const EACH = 5;
const QUESTIONS = [
  ["skills", "帮我提交代码"],
  ["documents", "孤独的感觉"],
  ["memory", "what did we decide about billing?"],
  ["devices", "打开除卧室以外的灯"],
];

export function all(main, context) {
  const results = new Results(main, SOURCES, EACH);
  let starting = false;

  async function start() {
    const counts = await context.refreshCounts();
    if (starting) put(main, welcome(counts));
  }

  function welcome(counts) {
    const total = SOURCES.reduce((sum, source) => sum + (counts[source] ?? 0), 0);
    return h(
      "div",
      { class: "welcome" },
      h("h1", {}, t("start.title")),
      h("p", { class: "lead" }, t("start.text")),
      total === 0
        ? fill()
        : h("div", { class: "chips", "aria-label": t("try") }, QUESTIONS.filter(([source]) => counts[source] > 0).map(([source, text]) => h("button", { type: "button", class: `chip of-${source}`, on: { click: () => context.setQuery(text) } }, text))),
      h("h2", {}, t("start.inside")),
      h("ul", { class: "sources" }, SOURCES.map((source) => tile(source, counts[source] ?? 0))),
      total > 0 && SOURCES.some((source) => source !== "skills" && !counts[source]) && fill(),
    );
  }

  function fill() {
    const button = h("button", { type: "button", class: "main", id: "examples" }, icon("plus"), t("start.examples"));
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        await putInExamples();
        toast(t("start.done"));
        await start();
      } catch (error) {
        button.disabled = false;
        failure(error);
      }
    });
    return h("section", { class: "empty of-all" }, h("h2", {}, t("start.fill")), h("p", {}, t("start.examples.text")), button);
  }

  return {
    async hear(query) {
      if (query !== "") {
        starting = false;
        await results.search(query);
      } else if (!starting) {
        starting = true;
        results.stop();
        closeDetail();
        tellDegraded([]);
        await start();
      }
    },
    leave: () => results.stop(),
  };
}

function tile(source, count) {
  return h(
    "li",
    { class: `of-${source}` },
    h("a", { href: addressOf(source), dataset: { stop: source } }, icon(source), h("strong", {}, number(count)), h("span", {}, t(`tab.${source}`))),
  );
}
