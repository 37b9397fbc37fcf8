// Figures as drawings: bars, columns, dots, and lines over weights and over time.

import { h, s } from "./dom.js";
import { number, t } from "./language.js";

const NARROW = window.matchMedia("(max-width: 600px)");

/** The width of a drawing of which two stand side by side. */
const HALF = 420;

/** How many units a drawing is wide: as many as there are pixels, so that its letters are as large as the others. */
function width() {
  return NARROW.matches ? 330 : 720;
}

/** A drawing that says the same in words. */
function canvas(across, tall, label) {
  return s("svg", { class: "chart", viewBox: `0 0 ${across} ${tall}`, role: "img", "aria-label": label });
}

/** One bar per row, the best one strong. */
export function bars(rows, measure, label) {
  const best = Math.max(...rows.map((row) => row[measure] ?? 0));
  // Where there is little room, names stand above their bars.
  const above = NARROW.matches ? 20 : 0;
  const left = above ? 2 : 220;
  const span = width() - left - 64;
  const step = 34 + above;
  const height = rows.length * step + 12;
  const drawing = canvas(width(), height, label);
  for (const share of [0.25, 0.5, 0.75, 1])
    drawing.append(s("path", { d: `M${left + span * share} 0V${height}`, class: "grid" }));
  rows.forEach((row, at) => {
    const value = row[measure] ?? 0;
    const y = at * step + 8 + above;
    const place = above ? { x: left, y: y - 7, class: "name first" } : { x: left - 12, y: y + 16, class: "name" };
    drawing.append(
      s("text", place, row.name),
      s(
        "rect",
        {
          x: left,
          y,
          width: Math.max(2, span * value),
          height: 22,
          rx: 4,
          class: value === best ? "best" : "bar-of",
        },
        s("title", {}, `${row.name}: ${value.toFixed(4)}`),
      ),
      s(
        "text",
        { x: left + span * value + 8, y: y + 16, class: value === best ? "value strong" : "value" },
        value.toFixed(3),
      ),
    );
  });
  return drawing;
}

/** From the vector leg alone on the left to the keyword leg alone on the right. */
export function sweepLine(rows, measure, label) {
  const sorted = [...rows].sort((one, other) => keywordWeight(one) - keywordWeight(other));
  const values = sorted.map((row) => row[measure] ?? 0);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = high - low || 0.1;
  const x = (at) => 60 + ((width() - 120) * at) / Math.max(1, sorted.length - 1);
  const y = (value) => 190 - ((value - low) / room) * 140;
  const best = values.indexOf(high);
  const drawing = canvas(width(), 250, label);
  drawing.append(s("path", { d: `M60 200H${width() - 60}`, class: "grid" }));
  drawing.append(
    s("path", {
      d: values.map((value, at) => `${at === 0 ? "M" : "L"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join(""),
      class: "line",
    }),
  );
  values.forEach((value, at) => {
    drawing.append(
      s(
        "circle",
        { cx: x(at), cy: y(value), r: at === best ? 8 : 4.5, class: at === best ? "best" : "dot" },
        s("title", {}, `${sorted[at].name}: ${value.toFixed(4)}`),
      ),
    );
  });
  // The line is drawn between its lowest and its highest value, so the figures stand beside it.
  for (const at of new Set([0, values.length - 1, best])) {
    const beside = at !== best && at > 0;
    const place = beside ? { x: x(at) + 12, y: y(values[at]) + 5 } : { x: x(at), y: y(values[at]) - 16 };
    const kind = at === best ? "value strong middle" : beside ? "value" : "value middle";
    drawing.append(s("text", { ...place, class: kind }, values[at].toFixed(3)));
  }
  drawing.append(
    s("text", { x: 60, y: 228, class: "value middle" }, t("why.meaning")),
    s("text", { x: width() - 60, y: 228, class: "value middle" }, t("why.words")),
  );
  return drawing;
}

/** What was said along the bottom, how often it was so upwards; on the line both are the same. */
export function reliabilityDots(dots, label) {
  const side = 220;
  const total = dots.reduce((sum, dot) => sum + dot.count, 0) || 1;
  const bottom = side + 24;
  const drawing = canvas(side + 74, side + 54, label);
  drawing.append(s("path", { d: `M50 24V${bottom}H${side + 50}`, class: "grid" }));
  drawing.append(s("path", { d: `M50 ${bottom}L${side + 50} 24`, class: "grid" }));
  for (const dot of dots) {
    const place = { cx: 50 + side * dot.said, cy: bottom - side * dot.was, r: 3 + 16 * Math.sqrt(dot.count / total) };
    drawing.append(
      s("circle", { ...place, class: "dot" }, s("title", {}, `${dot.said.toFixed(2)} → ${dot.was.toFixed(2)} (${dot.count})`)),
    );
  }
  for (const value of [0, 0.5, 1]) {
    drawing.append(s("text", { x: 50 + side * value, y: bottom + 18, class: "value middle" }, String(value)));
    drawing.append(s("text", { x: 26, y: bottom + 4 - side * value, class: "value middle" }, String(value)));
  }
  return h("figure", {}, drawing, h("figcaption", { class: "muted small" }, label));
}

/** A value over time, from the first sample to the last: [{at (ms), value}]; the highest and the latest are written. */
export function timeLine(samples, label) {
  const across = Math.min(width(), HALF);
  const drawing = canvas(across, 190, label);
  const [first, last] = [samples[0], samples[samples.length - 1]];
  const high = Math.max(1, ...samples.map((one) => one.value));
  const x = (at) => 70 + ((across - 150) * (at - first.at)) / Math.max(1, last.at - first.at);
  const y = (value) => 150 - (value / high) * 120;
  drawing.append(s("path", { d: `M70 ${y(high)}H${across - 80}M70 150H${across - 80}`, class: "grid" }));
  const way = samples.map((one, at) => `${at === 0 ? "M" : "L"}${x(one.at).toFixed(1)} ${y(one.value).toFixed(1)}`);
  drawing.append(
    s("path", { d: `${way.join("")}V150H70Z`, class: "under" }),
    s("path", { d: way.join(""), class: "line" }),
    s("circle", { cx: x(last.at), cy: y(last.value), r: 5, class: "best" }),
    s("text", { x: 58, y: y(high) + 5, class: "name" }, number(high)),
    s("text", { x: 58, y: 155, class: "name" }, "0"),
    s("text", { x: x(last.at) + 12, y: y(last.value) + 5, class: "value strong" }, number(last.value)),
    s("text", { x: 70, y: 176, class: "value" }, clock(first.at)),
    s("text", { x: across - 80, y: 176, class: "name" }, clock(last.at)),
  );
  return drawing;
}

/** How many fell into each step: [{name, count}], one column each. */
export function columns(steps, label) {
  const across = Math.min(width(), HALF);
  const drawing = canvas(across, 190, label);
  const high = Math.max(1, ...steps.map((one) => one.count));
  const room = Math.min(90, (across - 40) / steps.length);
  // Where names would run into each other, some stand for all.
  const named = Math.ceil(62 / room);
  drawing.append(s("path", { d: `M20 150H${across - 20}`, class: "grid" }));
  steps.forEach((one, at) => {
    const tall = (one.count / high) * 115;
    const middle = 20 + room * (at + 0.5);
    drawing.append(
      s("rect", { x: middle - room * 0.36, y: 150 - tall, width: room * 0.72, height: tall, rx: 3, class: "best" }),
    );
    if (at % named === 0) drawing.append(s("text", { x: middle, y: 172, class: "value middle" }, one.name));
    if (one.count > 0) drawing.append(s("text", { x: middle, y: 142 - tall, class: "value middle" }, number(one.count)));
  });
  return drawing;
}

function clock(at) {
  return new Date(at).toLocaleTimeString([], { hour12: false });
}

function keywordWeight(row) {
  return row.keyword_weight / (row.vector_weight + row.keyword_weight || 1);
}
