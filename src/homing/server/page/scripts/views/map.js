// Vectors as points on a plane, coloured by where they come from, with the question among them.

import { ask } from "../api.js";
import { h, put, s } from "../dom.js";
import { named, number, percent, t } from "../language.js";
import { say, tellDegraded } from "../messages.js";
import { empty, heading, segments } from "../parts.js";

const SOURCES = ["all", "skills", "documents", "memory"];
const SIZE = 1000;
const MARGIN = 48;
const MOST = 600;
const HUES = 6;

export function map(main, context) {
  let source = context.parts[0] && SOURCES.includes(context.parts[0]) ? context.parts[0] : "all";
  let latest = 0;
  let aborting = null;

  async function hear(query) {
    aborting?.abort();
    aborting = new AbortController();
    const mine = (latest += 1);
    const body = { source, limit: MOST, ...(query ? { query } : {}) };
    const answer = await ask("POST", "/map", body, { signal: aborting.signal });
    if (mine !== latest) return;
    tellDegraded([answer]);
    draw(answer, query);
  }

  function draw(answer, query) {
    const choose = (value) => {
      source = value;
      hear(context.query());
    };
    const picker = segments(
      t("map.source"),
      SOURCES.map((one) => [one, t(`tab.${one}`)]),
      source,
      choose,
    );
    if (answer.points.length === 0) {
      put(main, heading(t("map.title"), t("map.text"), picker), empty("map", t("map.empty"), t("map.empty.text")));
      return;
    }
    say(t("map.label", { n: answer.points.length }));
    const hues = colours(answer.points, source);
    put(
      main,
      heading(t("map.title"), t("map.text"), picker),
      h(
        "figure",
        { class: "map sheet" },
        chart(answer, query, hues),
        legend(hues),
        h("figcaption", { class: "small muted" }, caption(answer)),
      ),
      answer.near.length > 0 && nearest(answer),
    );
  }

  return {
    hear,
    leave: () => {
      latest += 1;
      aborting?.abort();
    },
  };
}

/** Which class each group of points is drawn in: the source's own colour, or one of six within a source. */
function colours(points, source) {
  const groups = [...new Set(points.map((point) => (source === "all" ? point.source : point.group)))];
  return {
    of: (point) => {
      const group = source === "all" ? point.source : point.group;
      return source === "all" ? `of-${group}` : `hue-${groups.indexOf(group) % HUES}`;
    },
    entries: groups
      .slice(0, 12)
      .map((group, at) => [
        source === "all" ? t(`tab.${group}`) : named("kind", group),
        source === "all" ? `of-${group}` : `hue-${at % HUES}`,
      ]),
  };
}

function chart(answer, query, hues) {
  const all = answer.query ? [...answer.points, answer.query] : answer.points;
  const place = scale(all);
  const near = new Set(answer.near.map((one) => `${one.source}:${one.id}`));
  const radius = (answer.points.length > 300 ? 5 : answer.points.length > 80 ? 7 : 9) * (isNarrow() ? 1.7 : 1);
  const drawing = s("svg", {
    viewBox: `0 0 ${SIZE} ${paperHeight()}`,
    role: "img",
    "aria-label": t("map.label", { n: answer.points.length }),
  });
  const dots = answer.points.map((point) => {
    const [x, y] = place(point);
    return { point, x, y, near: near.has(`${point.source}:${point.id}`) };
  });
  const asked = answer.query ? place(answer.query) : null;
  if (asked !== null) drawing.append(...bearings(asked, dots));
  for (const dot of dots) {
    const title = s("title", {}, `${dot.point.group ? `${dot.point.group}: ` : ""}${dot.point.label}`);
    drawing.append(
      s(
        "circle",
        {
          cx: dot.x,
          cy: dot.y,
          r: dot.near ? radius * 1.3 : radius,
          class: `point ${hues.of(dot.point)}${dot.near ? " near" : ""}`,
        },
        title,
      ),
    );
  }
  if (asked !== null)
    drawing.append(
      s("circle", { cx: asked[0], cy: asked[1], r: 14, class: "query" }),
      s("circle", { cx: asked[0], cy: asked[1], r: 5, class: "query-dot" }),
    );
  drawing.append(...labels(dots, asked, query, radius));
  return drawing;
}

/** Rings around the question, and a line to each of what is nearest in truth. */
function bearings([x, y], dots) {
  const rings = [60, 120, 190].map((r) => s("circle", { cx: x, cy: y, r, class: "reach" }));
  return [
    ...rings,
    ...dots.filter((dot) => dot.near).map((dot) => s("line", { x1: x, y1: y, x2: dot.x, y2: dot.y, class: "to" })),
  ];
}

/** Words for the points, the nearest first; one that would cover another is left out. */
function labels(dots, asked, query, radius) {
  const size = isNarrow() ? 30 : 15;
  const taken = dots.map((dot) => [dot.x - radius, dot.y - radius, dot.x + radius, dot.y + radius]);
  const drawn = [];
  const free = (box) =>
    box[2] <= SIZE &&
    taken.every((other) => box[2] < other[0] || box[0] > other[2] || box[3] < other[1] || box[1] > other[3]);
  if (asked !== null) {
    const large = size * 1.3;
    const text = short(query, 20);
    const half = width(text, large) / 2;
    const [x, y] = asked;
    const spots = [
      [x, y - 24],
      [x, y + 24 + large],
      [x - half - 26, y + large / 3],
      [x + half + 26, y + large / 3],
    ].map(([left, down]) => [Math.min(Math.max(left, half + 8), SIZE - half - 8), down]);
    const boxOf = ([left, down]) => [left - half, down - large, left + half, down + 6];
    const spot = spots.find((one) => free(boxOf(one))) ?? spots[0];
    taken.push(boxOf(spot), [x - 16, y - 16, x + 16, y + 16]);
    drawn.push(s("text", { x: spot[0], y: spot[1], class: "query-label" }, text));
  }
  for (const dot of [...dots].sort((one, other) => other.near - one.near).slice(0, 160)) {
    const text = short(dot.point.label.replace(/^[#>*\s-]+/, ""), 13);
    const [x, y] = [dot.x + radius + 6, dot.y + size / 3];
    const box = [x, y - size, x + width(text, size), y + size * 0.3];
    if (!free(box)) continue;
    taken.push(box);
    drawn.push(s("text", { x, y, class: dot.near ? "label near" : "label" }, text));
  }
  return drawn;
}

/** A phone is held upright, and so is its map. */
function isNarrow() {
  return window.innerWidth <= 860;
}

function paperHeight() {
  return isNarrow() ? 1150 : 600;
}

/** About how wide a text is: a Chinese character is as wide as it is high. */
function width(text, size) {
  return [...text].reduce((sum, character) => sum + (character > "\u2e7f" ? size : size * 0.56), 0);
}

/** From the model's two directions to the paper: as large as fits, one scale for both. */
function scale(points) {
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const width = SIZE - 2 * MARGIN - 100;
  const height = paperHeight() - 2 * MARGIN;
  const factor = Math.min(width / (right - left || 1), height / (high - low || 1));
  const x0 = MARGIN + (width - (right - left) * factor) / 2;
  const y0 = MARGIN + (height - (high - low) * factor) / 2;
  return (point) =>
    [(x0 + (point.x - left) * factor).toFixed(1), (y0 + (high - point.y) * factor).toFixed(1)].map(Number);
}

function legend(hues) {
  return h(
    "ul",
    { class: "legend" },
    hues.entries.map(([name, hue]) => h("li", { class: hue }, h("i"), name)),
  );
}

function caption(answer) {
  const some =
    answer.points.length < answer.total
      ? `${t("map.some", { n: number(answer.points.length), total: number(answer.total) })} · `
      : "";
  return `${some}${t("map.shown", { share: percent(answer.shown) })} · ${answer.model}`;
}

function nearest(answer) {
  return h(
    "section",
    { class: "sheet" },
    h("h2", {}, t("map.near")),
    h(
      "ol",
      { class: "near-list" },
      answer.near.map((one) =>
        h(
          "li",
          { class: `of-${one.source}` },
          h("b", {}, one.score.toFixed(2)),
          " ",
          h("span", {}, short(one.label, 80)),
          " ",
          h("span", { class: "chip" }, t(`tab.${one.source}`)),
        ),
      ),
    ),
  );
}

function short(text, length) {
  const characters = [...String(text)];
  return characters.length > length ? `${characters.slice(0, length).join("")}…` : String(text);
}
