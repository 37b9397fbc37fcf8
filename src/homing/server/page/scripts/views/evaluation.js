// Results of `homing eval`: saved on the server or dropped here, as a chart and a table.

import { ask } from "../api.js";
import { bars, reliabilityDots, sweepLine } from "../chart.js";
import { h, put } from "../dom.js";
import { number, t } from "../language.js";
import { toast } from "../messages.js";
import { command, empty, fileButton, heading, segments, takesFiles } from "../parts.js";

const MEASURES = [
  ["recall_1", "recall@1"],
  ["recall_5", "recall@5"],
  ["recall_10", "recall@10"],
  ["ndcg_10", "nDCG@10"],
  ["mrr", "MRR"],
  ["abstained", "evaluation.abstained"],
  ["kept", "evaluation.kept"],
];

export function evaluation(main) {
  let result = null;
  let saved = [];
  let measure = "recall_5";
  let language = "all";
  let asked = false;

  async function load() {
    try {
      saved = (await ask("GET", "/evaluations")).evaluations;
      if (saved.length > 0) result = read(await ask("GET", `/evaluations/${encodeURIComponent(saved[0].id)}`));
    } finally {
      draw();
    }
  }

  async function take([file]) {
    try {
      result = read(JSON.parse(await file.text()));
      draw();
    } catch {
      toast(t("evaluation.bad"), { bad: true });
    }
  }

  function draw() {
    const chooser = fileButton(t("evaluation.choose"), ".json", take);
    const page = h(
      "div",
      { class: "stack drop of-evaluation", dataset: { drop: t("documents.drop") } },
      heading(t("evaluation.title"), t("evaluation.text"), chooser),
      result === null ? teach() : [picker(), sets(), table()],
    );
    takesFiles(page, take);
    put(main, page);
  }

  function teach() {
    return empty(
      "evaluation",
      t("evaluation.empty"),
      t("evaluation.empty.text"),
      command("homing eval questions.jsonl --save"),
    );
  }

  function picker() {
    const languages = [...new Set(result.rows.map((row) => row.language))];
    const again = (change) => (value) => {
      change(value);
      draw();
    };
    return h(
      "div",
      { class: "row" },
      saved.length > 1 && chooseSaved(),
      segments(
        t("evaluation.metric"),
        measured(result),
        measure,
        again((value) => (measure = value)),
      ),
      languages.length > 1 &&
        segments(
          t("evaluation.languages"),
          languages.map((one) => [one, one === "all" ? t("evaluation.every") : one]),
          language,
          again((value) => (language = value)),
        ),
    );
  }

  function chooseSaved() {
    const select = h(
      "select",
      { class: "bare", "aria-label": t("evaluation.set") },
      saved.map((one) =>
        h(
          "option",
          { value: one.id, selected: one.id === result.id },
          `${one.created.slice(0, 16).replace("T", " ")} · ${one.sets.join(", ")}`,
        ),
      ),
    );
    select.addEventListener("change", async () => {
      result = read(await ask("GET", `/evaluations/${encodeURIComponent(select.value)}`));
      draw();
    });
    return select;
  }

  function sets() {
    const rows = result.rows.filter((row) => row.language === language);
    const title = t(MEASURES.find(([key]) => key === measure)[1]);
    const several = new Set(rows.map((row) => row.model)).size > 1;
    return [...new Set(rows.map((row) => row.set))].map((set) => {
      const mine = rows
        .filter((row) => row.set === set)
        .map((row) => ({
          ...row,
          name: several ? `${row.configuration} · ${shortModel(row.model)}` : row.configuration,
        }));
      const swept = !several && mine.length > 5;
      const times = result.latency.filter((one) => one.set === set && one.mode !== "keyword");
      return h(
        "section",
        { class: "sheet" },
        h(
          "div",
          { class: "head" },
          h("h2", {}, set),
          h(
            "span",
            { class: "muted small" },
            `${title} · ${t("evaluation.questions", { n: number(mine[0].questions) })}`,
          ),
        ),
        swept ? sweepLine(mine, measure, t("evaluation.sweep")) : bars(mine, measure, `${set}: ${title}`),
        h(
          "p",
          { class: "small muted" },
          times
            .map(
              (one) =>
                `${shortModel(one.model)}: ${t("evaluation.latency", { mode: t(`mode.${one.mode}`), p50: number(one.p50_ms, 1), p95: number(one.p95_ms, 1) })}`,
            )
            .join(" · "),
        ),
        reliability(set),
      );
    });
  }

  /** How far what searches said of themselves can be believed, where the result knows. */
  function reliability(set) {
    const dots = result.reliability.filter((dot) => dot.set === set && dot.model === result.models?.[0]);
    if (dots.length === 0) return null;
    const of = (kind) => reliabilityDots(dots.filter((dot) => dot.kind === kind), t(`evaluation.${kind}`));
    return h("div", { class: "row reliability" }, of("confidence"), of("score"));
  }

  function table() {
    const rows = result.rows.filter((row) => row.language === language);
    const shown = measured(result);
    return h(
      "section",
      { class: "sheet scrolls", tabindex: "0", "aria-label": t("evaluation.title") },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", {}, t("evaluation.set")),
            h("th", {}, t("evaluation.configuration")),
            shown.map(([, name]) => h("th", { class: "number" }, t(name))),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((row) =>
            h(
              "tr",
              {},
              h("td", {}, row.set),
              h("td", {}, row.configuration, h("div", { class: "small muted" }, shortModel(row.model))),
              shown.map(([key]) => h("td", { class: "number" }, figure(row, key))),
            ),
          ),
        ),
      ),
    );
  }

  return {
    async hear() {
      if (asked) return;
      asked = true;
      await load();
    },
  };
}

/** The measures that this result has, named. */
function measured(result) {
  return MEASURES.filter(([key]) => result.rows.some((row) => typeof row[key] === "number")).map(([key, name]) => [
    key,
    t(name),
  ]);
}

/** `local/all-MiniLM-L6-v2-zh@384` is known by its name. */
function shortModel(identity) {
  return identity.replace(/^[^/]*\//, "").replace(/@\d+$/, "");
}

/** Checks that it is a result, and nothing else: a file may come from anywhere. */
function read(data) {
  const rows = Array.isArray(data?.rows) ? data.rows : [];
  const wanted = ["set", "model", "configuration", "language"];
  if (data?.format !== 1 || rows.length === 0 || rows.some((row) => wanted.some((key) => typeof row[key] !== "string")))
    throw new Error("not a result");
  const list = (part) => (Array.isArray(part) ? part : []);
  return { ...data, latency: list(data.latency), reliability: list(data.reliability) };
}

/** Where every question is one that nothing answers, there is nothing to find, and no share of it. */
function figure(row, key) {
  const unasked = row[key] === null || (row.kept === null && key !== "abstained");
  return unasked ? "–" : row[key].toFixed(3);
}
