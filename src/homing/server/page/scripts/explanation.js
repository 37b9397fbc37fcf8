// Why a hit is here: both legs, their places, what each brought, the words that matched.

import { h, s } from "./dom.js";
import { fusionPicture } from "./fusion_picture.js";
import { spansOf } from "./highlight.js";
import { described } from "./hits.js";
import { named, percent, t } from "./language.js";
import { markdown, markdownLine } from "./markdown.js";

const SHOWN_ABOVE = new Set([
  "name",
  "tags",
  "why",
  "collection",
  "document_id",
  "project_id",
  "project",
  "document",
  "description",
  "part",
  "snippet",
  "snippet_highlights",
  "highlights",
]);

/** {label, className, content} for the panel. */
export function explanation(group, hit, query) {
  const told = described(group.source, hit);
  const place = group.hits.indexOf(hit);
  const legs = (hit.legs ?? []).filter((leg) => leg.leg === "vector" || leg.leg === "keyword");
  const sentence = inWords(legs, place + 1, group.mode);
  return {
    label: t("why"),
    className: `of-${group.source}`,
    content: h(
      "article",
      { class: "why" },
      h("p", { class: "small muted" }, t("why")),
      h("h2", {}, told.title),
      told.place && h("p", { class: "muted small" }, told.place),
      legs.length > 0 &&
        h("figure", {}, fusionPicture(group, place, `${t("why.picture")}: ${sentence}`), h("figcaption", {}, sentence)),
      legs.length > 0 &&
        h(
          "div",
          { class: "shares" },
          legs.map((leg) => share(leg, legs)),
        ),
      gauge(hit.score),
      matched(hit, legs),
      reasons(hit),
      passages(hit),
      // All that is told of a device stands above already.
      told.text &&
        group.source !== "devices" &&
        h(
          "section",
          {},
          h("h3", {}, t("why.all")),
          h(
            "div",
            { class: "passage prose" },
            markdown(told.text, {
              level: 4,
              marks: spansOf(told.text, { spans: told.text === hit.text ? hit.spans : [], words: hit.matched }),
            }),
          ),
        ),
      told.open && h("a", { class: "button", href: told.open }, t("why.open")),
      details(hit),
    ),
  };
}

function inWords(legs, place, mode) {
  const ranks = Object.fromEntries(legs.map((leg) => [leg.leg, leg.rank]));
  if (ranks.vector && ranks.keyword) return t("why.sentence.both", { v: ranks.vector, k: ranks.keyword, n: place });
  if (ranks.vector) return t("why.sentence.vector", { v: ranks.vector, n: place });
  if (mode === "keyword") return t("why.sentence.words-only", { k: ranks.keyword ?? place });
  return t("why.sentence.keyword", { k: ranks.keyword ?? "–", n: place });
}

function share(leg, legs) {
  const whole = legs.reduce((sum, one) => sum + (one.share ?? 0), 0);
  const part = whole > 0 && leg.share !== null ? leg.share / whole : null;
  const bar = h("div", { class: "bar", "aria-hidden": "true" }, h("i"));
  bar.firstChild.style.width = `${(part ?? 0) * 100}%`;
  const raw =
    leg.leg === "vector"
      ? t("why.cosine", { value: leg.score.toFixed(3) })
      : t("why.score", { value: leg.score.toFixed(2) });
  return h(
    "div",
    { class: `share ${leg.leg}` },
    h("strong", {}, t(leg.leg === "vector" ? "why.meaning" : "why.words")),
    h(
      "span",
      { class: "small muted" },
      [t("why.rank", { n: leg.rank }), raw, leg.weight !== null && t("why.weight", { weight: leg.weight })]
        .filter(Boolean)
        .join(" · "),
    ),
    part !== null && h("span", { class: "small part" }, t("why.share", { share: percent(part) })),
    part !== null && bar,
  );
}

/** The score on its scale, with the border in the middle. */
function gauge(score) {
  if (score === null || score === undefined) return null;
  const at = 10 + Math.max(0, Math.min(1, score)) * 360;
  return h(
    "section",
    { class: "gauge" },
    h("h3", {}, `${t("why.relatedness")} `, h("b", {}, score.toFixed(2))),
    s(
      "svg",
      { viewBox: "0 0 380 34", "aria-hidden": "true" },
      s("rect", { x: 10, y: 14, width: 360, height: 6, rx: 3, class: "track" }),
      s("rect", { x: 10, y: 14, width: Math.max(0, at - 10), height: 6, rx: 3, class: "filled" }),
      s("path", { d: "M190 8v18", class: "border" }),
      s("circle", { cx: at, cy: 17, r: 7, class: "at" }),
    ),
    h("p", { class: "small muted" }, t("why.relatedness.text")),
  );
}

function matched(hit, legs) {
  const words = hit.matched ?? [];
  if (words.length === 0 && legs.length === 0) return null;
  return h(
    "section",
    {},
    h("h3", {}, t("why.matched")),
    words.length > 0
      ? h(
          "div",
          { class: "chips" },
          words.map((word) => h("span", { class: "chip" }, h("mark", {}, word))),
        )
      : h("p", { class: "small muted" }, t("why.matched.none")),
  );
}

function reasons(hit) {
  const said = (hit.reasons ?? []).filter((one) => !one.includes(":"));
  if (said.length === 0) return null;
  return h(
    "section",
    {},
    h("h3", {}, t("why.reasons")),
    h(
      "div",
      { class: "chips" },
      said.map((one) => h("span", { class: "chip" }, named("reason", one))),
    ),
  );
}

/** The stretches of a skill that matched, from its head or its body. */
function passages(hit) {
  const found = hit.metadata?.why;
  if (!Array.isArray(found) || found.length === 0) return null;
  return h(
    "section",
    {},
    h("h3", {}, t("why.reasons")),
    found.map((one) =>
      h(
        "p",
        { class: "passage small" },
        h("b", {}, `${t(one.leg === "vector" ? "why.meaning" : "why.words")} · ${named("part", one.part)}`),
        h("br"),
        markdownLine(String(one.text ?? ""), { words: hit.matched ?? [] }),
      ),
    ),
  );
}

function details(hit) {
  const rows = Object.entries(hit.metadata ?? {}).filter(
    ([key, value]) => !SHOWN_ABOVE.has(key) && value !== null && value !== "",
  );
  rows.unshift(["id", hit.id]);
  return h(
    "details",
    {},
    h("summary", {}, t("why.details")),
    h(
      "dl",
      {},
      rows.map(([key, value]) => [
        h("dt", {}, key),
        h("dd", {}, typeof value === "object" ? JSON.stringify(value) : String(value)),
      ]),
    ),
  );
}
