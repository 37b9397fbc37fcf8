// The answer to a question: groups by source, each hit with how it was found; one opens its explanation.

import { ask } from "./api.js";
import { explanation } from "./explanation.js";
import { closeDetail, detailIsBeside, openDetail } from "./detail.js";
import { h, put, s } from "./dom.js";
import { excerpt, highlighted } from "./highlight.js";
import { described } from "./hits.js";
import { named, number, t } from "./language.js";
import { markdownLine } from "./markdown.js";
import { isDegraded, say, tellDegraded } from "./messages.js";
import { go } from "./route.js";

/** Shows results in `main`; call `search` with each question. `extra` are fields of the request. */
export class Results {
  constructor(main, sources, limit, extra = {}) {
    this.main = main;
    this.request = { sources, limit, ...extra };
    this.latest = 0;
    this.aborting = null;
    this.weaker = false;
    this.opened = null;
    this.query = "";
  }

  /** Asks and draws; an answer that comes after a newer question is dropped. */
  async search(query) {
    this.aborting?.abort();
    this.aborting = new AbortController();
    const mine = (this.latest += 1);
    if (query !== this.query) this.weaker = false;
    const asked = { query, ...this.request, weaker: this.weaker };
    const answer = await ask("POST", "/search", asked, { signal: this.aborting.signal });
    if (mine !== this.latest) return;
    this.query = query;
    tellDegraded(answer.groups);
    this.draw(answer.groups.map(ranked).sort((one, other) => best(other) - best(one)));
  }

  stop() {
    this.latest += 1;
    this.aborting?.abort();
  }

  draw(groups) {
    const focused = document.activeElement?.dataset?.hit;
    const filled = groups.filter((group) => group.hits.length > 0);
    const total = filled.reduce((sum, group) => sum + group.hits.length, 0);
    const took = Math.max(0, ...groups.map((group) => group.took_ms ?? 0));
    say(isDegraded() ? t("results.said.degraded", { n: total }) : t("results.said", { n: total, ms: number(took) }));
    const drawn = filled.map((group) => this.group(group));
    put(
      this.main,
      h("h1", { class: "unseen" }, t("results.region")),
      drawn.length > 0 && legend(),
      h(
        "div",
        { class: "results", role: "region", "aria-label": t("results.region") },
        corrected(groups),
        drawn.length > 0 ? drawn : [nothing(this.query), this.more(groups)],
      ),
    );
    if (focused !== undefined) this.main.querySelector(`[data-hit="${CSS.escape(focused)}"]`)?.focus();
    this.refreshDetail(filled);
  }

  group(group) {
    const list = h(
      "ul",
      { class: "hits" },
      group.hits.map((hit) => h("li", {}, this.hit(group, hit))),
    );
    return h(
      "section",
      { class: `group of-${group.source}`, "aria-label": t(`tab.${group.source}`) },
      h(
        "header",
        {},
        h("h2", {}, t(`tab.${group.source}`)),
        h(
          "span",
          { class: "muted small" },
          `${named("mode", group.mode)} · ${number(group.took_ms ?? 0, group.took_ms < 10 ? 1 : 0)} ms`,
        ),
        this.request.sources.length > 1 &&
          h(
            "button",
            { type: "button", class: "quiet small only", on: { click: () => go(group.source, [], this.query) } },
            t("results.more", { source: t(`tab.${group.source}`) }),
          ),
      ),
      list,
      this.more([group]),
    );
  }

  /** Says how many weaker hits were left out, and shows them when it is pressed. */
  more(groups) {
    const left = groups.reduce((sum, group) => sum + (group.left_out ?? 0), 0);
    const show = () => {
      this.weaker = true;
      this.search(this.query);
    };
    return (
      left > 0 && h("button", { type: "button", class: "quiet more", on: { click: show } }, t("results.weaker", { n: left }))
    );
  }

  hit(group, hit) {
    const told = described(group.source, hit);
    const marks = { words: hit.matched ?? [] };
    const button = h(
      "button",
      {
        type: "button",
        class: "hit",
        dataset: { hit: `${group.source}:${hit.id}` },
        "aria-expanded": String(this.opened === `${group.source}:${hit.id}`),
        "aria-controls": "detail",
        // While an explanation is open it follows the arrows.
        on: {
          click: () => this.open(group, hit, button),
          focus: () => this.opened !== null && detailIsBeside() && this.open(group, hit, button),
        },
      },
      ring(hit.score),
      h(
        "span",
        { class: "what" },
        h(
          "span",
          { class: "title" },
          h("span", {}, highlighted(told.title, marks)),
          told.place && h("span", { class: "place" }, told.place),
        ),
        told.text &&
          told.text !== told.title &&
          h("span", { class: "text" }, markdownLine(excerpt(told.text, marks), marks)),
      ),
      h("span", { class: "legs" }, legMarks(hit, group.hits.indexOf(hit) + 1)),
    );
    return button;
  }

  open(group, hit, button) {
    this.opened = `${group.source}:${hit.id}`;
    this.main
      .querySelectorAll(".hit")
      .forEach((one) => one.setAttribute("aria-expanded", String(one.dataset.hit === this.opened)));
    openDetail(explanation(group, hit, this.query), button, () => {
      this.opened = null;
      this.main.querySelectorAll(".hit").forEach((one) => one.setAttribute("aria-expanded", "false"));
    });
  }

  /** An explanation that is open follows its hit while the question changes, and closes when the hit is gone. */
  refreshDetail(groups) {
    if (this.opened === null) return;
    for (const group of groups) {
      for (const hit of group.hits) {
        if (`${group.source}:${hit.id}` === this.opened) {
          this.open(group, hit, this.main.querySelector(`[data-hit="${CSS.escape(this.opened)}"]`));
          return;
        }
      }
    }
    closeDetail();
  }
}

/** Legs get the place they have among these hits where they have none, or share one: not every source counts places. */
function ranked(group) {
  for (const name of ["vector", "keyword"]) {
    const legs = group.hits.flatMap((hit) => (hit.legs ?? []).filter((leg) => leg.leg === name));
    const places = new Set(legs.map((leg) => leg.rank));
    if (legs.length > 0 && (places.has(null) || places.size < legs.length)) {
      [...legs].sort((one, other) => other.score - one.score).forEach((leg, at) => (leg.rank = at + 1));
    }
  }
  return group;
}

/** What a group is worth a place for: its best hit; a command that the home understood is what was meant. */
function best(group) {
  if (group.hits.some((hit) => hit.metadata?.decision === "act")) return 2;
  const strongest = Math.max(0, ...group.hits.map((hit) => hit.score ?? 0.45));
  return group.hits.length === 0 ? -1 : strongest;
}

/** The score as a ring that closes. */
function ring(score) {
  const around = 2 * Math.PI * 15;
  const known = score !== null && score !== undefined;
  const part = known ? Math.max(0, Math.min(1, score)) : 0;
  return s(
    "svg",
    {
      class: known ? "ring" : "ring open",
      viewBox: "0 0 40 40",
      role: "img",
      "aria-label": known ? t("why.score", { value: score.toFixed(2) }) : t("mode.keyword"),
    },
    s("circle", { cx: 20, cy: 20, r: 15, class: "track" }),
    known &&
      s("circle", {
        cx: 20,
        cy: 20,
        r: 15,
        class: "arc",
        "stroke-dasharray": `${(part * around).toFixed(1)} ${around.toFixed(1)}`,
        transform: "rotate(-90 20 20)",
      }),
    s("text", { x: 20, y: 24 }, known ? String(Math.round(part * 100)) : "–"),
  );
}

/** A full circle for the place it has here, a round mark for its place by meaning, a square one for that by words. */
function legMarks(hit, place) {
  const found = (hit.legs ?? []).filter((leg) => leg.rank !== null && (leg.leg === "vector" || leg.leg === "keyword"));
  if (found.length === 0) return [];
  const legs = found.map((leg) => [leg.leg, leg.leg === "vector" ? "why.meaning" : "why.words", leg.rank]);
  return [["fused", "why.fused", place], ...legs].map(([leg, key, rank]) =>
    h(
      "span",
      { class: `leg ${leg}`, title: `${t(key)} ${t("why.rank", { n: rank })}` },
      h("span", { class: "unseen" }, t(key)),
      String(rank),
    ),
  );
}

/** What the marks beside the hits mean. */
function legend() {
  const marks = [
    [h("span", { class: "leg fused" }, "1"), "legend.fused"],
    [h("span", { class: "leg vector" }, "1"), "legend.meaning"],
    [h("span", { class: "leg keyword" }, "1"), "legend.words"],
    [ring(0.5), "legend.ring"],
    [h("mark", {}, t("legend.mark.word")), "legend.mark"],
  ];
  return h(
    "dl",
    { class: "marks small muted", "aria-label": t("legend") },
    marks.map(([sign, key]) => h("div", {}, h("dt", { "aria-hidden": "true" }, sign), h("dd", {}, t(key)))),
  );
}

/** Words that no text holds, and what was searched for instead. */
function corrected(groups) {
  const words = Object.assign({}, ...groups.map((group) => group.corrected ?? {}));
  return Object.entries(words).map(([word, read]) =>
    h("p", { class: "muted", role: "status" }, t("results.corrected", { word, read })),
  );
}

function nothing(query) {
  return h(
    "div",
    { class: "nothing" },
    h("h2", {}, t("results.none", { query })),
    h("p", { class: "muted" }, t("results.none.hint")),
  );
}
