// Vectors as points on a plane, coloured by where they come from, with the question among them.

import { ask } from "../api.js";
import { h, put, s } from "../dom.js";
import { named, number, percent, t } from "../language.js";
import { say, tellDegraded } from "../messages.js";
import { empty, heading, segments } from "../parts.js";

const SOURCES = ["all", "skills", "documents", "memory"];
const SIZE = 1000;
const MARGIN = 60;
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
    const picker = segments(t("map.source"), SOURCES.map((one) => [one, t(`tab.${one}`)]), source, choose);
    if (answer.points.length === 0) {
      put(main, heading(t("map.title"), t("map.text"), picker), empty("map", t("map.empty"), t("map.empty.text")));
      return;
    }
    say(t("map.label", { n: answer.points.length }));
    const hues = colours(answer.points, source);
    put(
      main,
      heading(t("map.title"), t("map.text"), picker),
      h("figure", { class: "map sheet" }, chart(answer, query, hues), legend(hues), h("figcaption", { class: "small muted" }, caption(answer))),
      answer.near.length > 0 && nearest(answer),
    );
  }

  return { hear, leave: () => { latest += 1; aborting?.abort(); } };
}

/** Which class each group of points is drawn in: the source's own colour, or one of six within a source. */
function colours(points, source) {
  const groups = [...new Set(points.map((point) => (source === "all" ? point.source : point.group)))];
  return {
    of: (point) => {
      const group = source === "all" ? point.source : point.group;
      return source === "all" ? `of-${group}` : `hue-${groups.indexOf(group) % HUES}`;
    },
    entries: groups.slice(0, 12).map((group, at) => [source === "all" ? t(`tab.${group}`) : named("kind", group), source === "all" ? `of-${group}` : `hue-${at % HUES}`]),
  };
}

function chart(answer, query, hues) {
  const all = answer.query ? [...answer.points, answer.query] : answer.points;
  const place = scale(all);
  const byId = new Map(answer.points.map((point) => [`${point.source}:${point.id}`, point]));
  const near = new Set(answer.near.map((one) => `${one.source}:${one.id}`));
  const radius = answer.points.length > 300 ? 6 : answer.points.length > 80 ? 8 : 11;
  const drawing = s("svg", { viewBox: `0 0 ${SIZE} ${SIZE * 0.68}`, role: "img", "aria-label": t("map.label", { n: answer.points.length }) });
  if (answer.query) {
    const [qx, qy] = place(answer.query);
    for (const reach of [60, 120, 190]) drawing.append(s("circle", { cx: qx, cy: qy, r: reach, class: "reach" }));
    for (const one of answer.near) {
      const point = byId.get(`${one.source}:${one.id}`);
      if (point === undefined) continue;
      const [x, y] = place(point);
      drawing.append(s("line", { x1: qx, y1: qy, x2: x, y2: y, class: "to" }));
    }
  }
  for (const point of answer.points) {
    const [x, y] = place(point);
    const isNear = near.has(`${point.source}:${point.id}`);
    drawing.append(s("circle", { cx: x, cy: y, r: isNear ? radius * 1.35 : radius, class: `point ${hues.of(point)}${isNear ? " near" : ""}` }, s("title", {}, `${point.group ? `${point.group}: ` : ""}${point.label}`)));
  }
  if (answer.points.length <= 40) {
    for (const point of answer.points) {
      const [x, y] = place(point);
      drawing.append(s("text", { x: x + radius + 5, y: y + 6, class: "label" }, short(point.label, 14)));
    }
  }
  if (answer.query) {
    const [qx, qy] = place(answer.query);
    drawing.append(s("circle", { cx: qx, cy: qy, r: 15, class: "query" }), s("circle", { cx: qx, cy: qy, r: 5, class: "query-dot" }));
    drawing.append(s("text", { x: qx, y: qy - 26, class: "query-label" }, short(query, 24)));
  }
  return drawing;
}

/** From the model's two directions to the paper: as large as fits, one scale for both. */
function scale(points) {
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const width = SIZE - 2 * MARGIN - 100;
  const height = SIZE * 0.68 - 2 * MARGIN;
  const factor = Math.min(width / (right - left || 1), height / (high - low || 1));
  const x0 = MARGIN + (width - (right - left) * factor) / 2;
  const y0 = MARGIN + (height - (high - low) * factor) / 2;
  return (point) => [(x0 + (point.x - left) * factor).toFixed(1), (y0 + (high - point.y) * factor).toFixed(1)].map(Number);
}

function legend(hues) {
  return h("ul", { class: "legend" }, hues.entries.map(([name, hue]) => h("li", { class: hue }, h("i"), name)));
}

function caption(answer) {
  const some = answer.points.length < answer.total ? `${t("map.some", { n: number(answer.points.length), total: number(answer.total) })} · ` : "";
  return `${some}${t("map.shown", { share: percent(answer.shown) })} · ${answer.model}`;
}

function nearest(answer) {
  return h(
    "section",
    { class: "sheet" },
    h("h2", {}, t("map.near")),
    h("ol", { class: "near-list" }, answer.near.map((one) => h("li", { class: `of-${one.source}` }, h("b", {}, one.score.toFixed(2)), " ", h("span", {}, short(one.label, 80)), " ", h("span", { class: "chip" }, t(`tab.${one.source}`))))),
  );
}

function short(text, length) {
  const characters = [...String(text)];
  return characters.length > length ? `${characters.slice(0, length).join("")}…` : String(text);
}
