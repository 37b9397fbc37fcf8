// Results of `homing eval`: saved on the server or dropped here, as a chart and a table.

import { ask } from "../api.js";
import { bars, sweepLine } from "../chart.js";
import { h, put } from "../dom.js";
import { number, t } from "../language.js";
import { toast } from "../messages.js";
import { command, empty, fileButton, heading, segments, takesFiles } from "../parts.js";

const MEASURES = [["recall_1", "recall@1"], ["recall_5", "recall@5"], ["recall_10", "recall@10"], ["ndcg_10", "nDCG@10"], ["mrr", "MRR"]];

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
    } catch {
      saved = [];
    }
    draw();
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
    const page = h("div", { class: "stack drop of-evaluation", dataset: { drop: t("documents.drop") } }, heading(t("evaluation.title"), t("evaluation.text"), chooser), result === null ? teach() : [picker(), sets(), table()]);
    takesFiles(page, take);
    put(main, page);
  }

  function teach() {
    return empty("evaluation", t("evaluation.title"), t("evaluation.text"), command("homing eval questions.jsonl --json > result.json"));
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
      segments(t("evaluation.metric"), MEASURES.filter(([key]) => result.rows.some((row) => key in row)), measure, again((value) => (measure = value))),
      languages.length > 1 && segments(t("evaluation.languages"), languages.map((one) => [one, one === "all" ? t("evaluation.every") : one]), language, again((value) => (language = value))),
    );
  }

  function chooseSaved() {
    const select = h("select", { class: "bare", "aria-label": t("evaluation.set") }, saved.map((one) => h("option", { value: one.id }, one.id)));
    select.addEventListener("change", async () => {
      result = read(await ask("GET", `/evaluations/${encodeURIComponent(select.value)}`));
      draw();
    });
    return select;
  }

  function sets() {
    const rows = result.rows.filter((row) => row.language === language);
    const title = MEASURES.find(([key]) => key === measure)[1];
    return [...new Set(rows.map((row) => row.set))].map((set) => {
      const mine = rows.filter((row) => row.set === set);
      const swept = mine.length > 5 && mine.every((row) => /^(vector|keyword|hybrid)/.test(row.configuration));
      const latency = result.latency?.[set];
      return h(
        "section",
        { class: "sheet" },
        h("div", { class: "head" }, h("h2", {}, set), h("span", { class: "muted small" }, `${title} · ${number(mine[0].questions)} ${t("evaluation.questions")}`)),
        swept ? sweepLine(mine, measure, t("evaluation.sweep")) : bars(mine, measure, `${set}: ${title}`),
        h("p", { class: "small muted" }, [result.model && t("evaluation.model", { model: result.model }), latency?.p50_ms !== undefined && t("evaluation.latency", { set, p50: number(latency.p50_ms, 1), p95: number(latency.p95_ms, 1) })].filter(Boolean).join(" · ")),
      );
    });
  }

  function table() {
    const rows = result.rows.filter((row) => row.language === language);
    return h(
      "section",
      { class: "sheet scrolls" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, h("th", {}, t("evaluation.set")), h("th", {}, t("evaluation.configuration")), MEASURES.map(([, name]) => h("th", { class: "number" }, name)))),
        h("tbody", {}, rows.map((row) => h("tr", {}, h("td", {}, row.set), h("td", {}, row.configuration), MEASURES.map(([key]) => h("td", { class: "number" }, row[key] === undefined || row[key] === null ? "–" : row[key].toFixed(3)))))),
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

/** Checks that it is a result, and nothing else. */
function read(data) {
  if (!Array.isArray(data?.rows) || data.rows.length === 0 || data.rows.some((row) => typeof row.configuration !== "string" || typeof row.set !== "string")) {
    throw new Error("not a result");
  }
  return { ...data, rows: data.rows.map((row) => ({ language: "all", questions: 0, ...row })) };
}
