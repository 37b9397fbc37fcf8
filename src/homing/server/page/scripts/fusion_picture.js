// The fusion drawn: the ranking by meaning on the left, the one by words on the right, what they become in the middle.

import { s } from "./dom.js";
import { t } from "./language.js";

const WIDTH = 380;
const COLUMNS = { vector: 64, fused: 190, keyword: 316 };
const TOP = 46;
const STEP = 22;
const MOST = 10;

/** `hits` are those of one answer in their order, `mode` is which legs answered; the one at `chosen` is drawn strongly, the others faintly. */
export function fusionPicture({ hits, mode }, chosen, label) {
  const depth = Math.min(MOST, Math.max(5, hits.length));
  const floor = TOP + (depth + 0.4) * STEP;
  const y = (rank) => (rank > depth ? floor : TOP + (rank - 1) * STEP);
  const whole =
    hits.slice(0, depth).every((hit) => hit.legs.every((leg) => !(leg.rank > depth))) &&
    legsOf(hits[chosen]).size === 2;
  const picture = s("svg", {
    class: "fusion",
    viewBox: `0 0 ${WIDTH} ${whole ? floor - 14 : floor + 26}`,
    role: "img",
    "aria-label": label,
  });
  picture.append(...ladders(depth, y));
  hits.slice(0, depth).forEach((hit, at) => {
    if (at !== chosen) picture.append(...strands(hit, at + 1, y, false));
  });
  if (hits[chosen] !== undefined)
    picture.append(...strands(hits[chosen], chosen + 1, y, true), ...missing(hits[chosen], chosen + 1, y, floor, mode));
  return picture;
}

function ladders(depth, y) {
  const heads = [
    ["vector", "why.meaning"],
    ["fused", "why.fused"],
    ["keyword", "why.words"],
  ];
  const drawn = heads.map(([column, key]) => s("text", { x: COLUMNS[column], y: 20, class: "head" }, t(key)));
  for (let rank = 1; rank <= depth; rank += 1) {
    drawn.push(s("circle", { cx: COLUMNS.vector, cy: y(rank), r: 2.2, class: "rung" }));
    drawn.push(s("circle", { cx: COLUMNS.fused, cy: y(rank), r: 2.2, class: "rung" }));
    drawn.push(s("rect", { x: COLUMNS.keyword - 2, y: y(rank) - 2, width: 4, height: 4, class: "rung" }));
  }
  return drawn;
}

function strands(hit, place, y, strong) {
  const whole = hit.legs.reduce((sum, leg) => sum + (leg.share ?? 0), 0);
  const drawn = [];
  for (const leg of hit.legs) {
    const column = COLUMNS[leg.leg];
    if (column === undefined || !leg.rank) continue;
    const from = y(leg.rank);
    const to = y(place);
    const middle = (column + COLUMNS.fused) / 2;
    const share = whole > 0 ? (leg.share ?? 0) / whole : 0.3;
    drawn.push(
      s("path", {
        d: `M${column} ${from}C${middle} ${from} ${middle} ${to} ${COLUMNS.fused} ${to}`,
        class: strong ? "strand strong" : "strand",
        "stroke-width": strong ? (1.5 + 7 * share).toFixed(1) : 1.2,
      }),
    );
    if (strong) drawn.push(...knot(leg, column, from));
  }
  if (strong) {
    drawn.push(s("circle", { cx: COLUMNS.fused, cy: y(place), r: 12, class: "knot" }));
    drawn.push(s("text", { x: COLUMNS.fused, y: y(place) + 4.5, class: "place" }, String(place)));
  }
  return drawn;
}

function knot(leg, column, at) {
  const outward = leg.leg === "vector" ? -1 : 1;
  const mark =
    leg.leg === "vector"
      ? s("circle", { cx: column, cy: at, r: 6, class: "end" })
      : s("rect", { x: column - 5.5, y: at - 5.5, width: 11, height: 11, rx: 1.5, class: "end" });
  const words = s(
    "text",
    { x: column + outward * 13, y: at + 4.5, class: leg.leg === "vector" ? "rank left" : "rank" },
    t("why.rank", { n: leg.rank }),
  );
  return [mark, words];
}

/** A leg that did not find the hit, or did not answer at all: a dotted stub from below its ladder. */
function missing(hit, place, y, floor, mode) {
  const silent = { semantic: "keyword", keyword: "vector" }[mode];
  const there = legsOf(hit);
  return ["vector", "keyword"]
    .filter((leg) => !there.has(leg))
    .flatMap((leg) => {
      const column = COLUMNS[leg];
      const middle = (column + COLUMNS.fused) / 2;
      return [
        s("path", {
          d: `M${column} ${floor}C${middle} ${floor} ${middle} ${y(place)} ${COLUMNS.fused} ${y(place)}`,
          class: "stub",
        }),
        s("text", { x: column, y: floor + 18, class: "none" }, t(leg === silent ? "why.silent" : "why.notfound")),
      ];
    });
}

function legsOf(hit) {
  return new Set((hit?.legs ?? []).filter((leg) => leg.rank && leg.leg in COLUMNS).map((leg) => leg.leg));
}
