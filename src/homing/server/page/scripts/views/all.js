// Everything: what is in here while nothing is asked, hits of every source while something is.

import { closeDetail } from "../detail.js";
import { h, put, s } from "../dom.js";
import { putInExamples } from "../examples.js";
import { icon } from "../icons.js";
import { language, number, t } from "../language.js";
import { failure, forgetDegraded, toast } from "../messages.js";
import { progressBar } from "../progress.js";
import { Results } from "../results.js";
import { addressOf } from "../route.js";

const SOURCES = ["skills", "documents", "memory", "devices"];
const EACH = 5;
const QUESTIONS = {
  zh: [
    ["skills", "帮我提交代码"],
    ["documents", "怎么撤销已经推送的提交"],
    ["memory", "点菜要注意什么"],
  ],
  en: [
    ["skills", "commit my changes"],
    ["documents", "how do I undo a commit that is pushed?"],
    ["memory", "what did we decide about billing?"],
  ],
};

export function all(main, context) {
  const results = new Results(main, SOURCES, EACH);
  let starting = false;

  async function start() {
    if (main.querySelector(".welcome") === null) put(main, welcome(null));
    const counts = await context.refreshCounts();
    if (starting) put(main, welcome(counts));
  }

  /** Before the counts are known everything stands where it will stand, so that nothing jumps. */
  function welcome(counts) {
    const total = counts === null ? 1 : SOURCES.reduce((sum, source) => sum + (counts[source] ?? 0), 0);
    return h(
      "div",
      { class: "welcome" },
      converging(),
      h("h1", {}, t("start.title")),
      h("p", { class: "lead" }, t("start.text")),
      total === 0
        ? fill()
        : h(
            "div",
            { class: "chips", "aria-label": t("try") },
            questions(counts).map(([source, text]) =>
              h(
                "button",
                { type: "button", class: `chip of-${source}`, on: { click: () => context.setQuery(text) } },
                text,
              ),
            ),
          ),
      h("h2", {}, t("start.inside")),
      h(
        "ul",
        { class: "sources" },
        SOURCES.map((source) => tile(source, counts?.[source] ?? (counts === null ? null : 0))),
      ),
      counts !== null && total > 0 && SOURCES.every((source) => source === "skills" || !counts[source]) && fill(),
    );
  }

  function fill() {
    const button = h("button", { type: "button", class: "main", id: "examples" }, icon("plus"), t("start.examples"));
    button.addEventListener("click", async () => {
      button.disabled = true;
      const bar = progressBar();
      button.after(bar.element);
      try {
        await putInExamples(bar.show);
        toast(t("start.done"));
        await start();
      } catch (error) {
        button.disabled = false;
        bar.element.remove();
        failure(error);
      }
    });
    return h(
      "section",
      { class: "empty of-all" },
      h("h2", {}, t("start.fill")),
      h("p", {}, t("start.examples.text")),
      button,
    );
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
        forgetDegraded();
        await start();
      }
    },
    leave: () => results.stop(),
  };
}

/** What can be asked of what is there, one question for each source. */
function questions(counts) {
  const asked = QUESTIONS[language()].filter(([source]) => counts === null || counts[source] > 0);
  return counts?.sentence ? [...asked, ["devices", counts.sentence]] : asked;
}

/** The mark of the house: from every source a way to the one thing. */
function converging() {
  const ways = [
    ["skills", "M26 40C110 50 130 120 200 160"],
    ["documents", "M374 56C300 60 270 110 200 160"],
    ["memory", "M18 262C90 270 130 200 200 160"],
    ["devices", "M380 276C310 270 270 210 200 160"],
  ];
  return s(
    "svg",
    { class: "converging", viewBox: "0 0 400 320", "aria-hidden": "true" },
    [44, 84, 124].map((r) => s("circle", { cx: 200, cy: 160, r, class: "reach" })),
    ways.map(([source, d]) => {
      const [x, y] = d.slice(1).split("C")[0].split(" ");
      return s("g", { class: `of-${source}` }, s("path", { d }), s("circle", { cx: x, cy: y, r: 7 }));
    }),
    s("circle", { cx: 200, cy: 160, r: 11, class: "home" }),
  );
}

function tile(source, count) {
  return h(
    "li",
    { class: `of-${source}` },
    h(
      "a",
      { href: addressOf(source), dataset: { stop: source } },
      icon(source),
      h("strong", {}, count === null ? "·" : number(count)),
      h("span", {}, t(`tab.${source}`)),
    ),
  );
}
