// Figures as drawings: bars for a few configurations, a line for a sweep of weights.

import { h, s } from "./dom.js";
import { t } from "./language.js";

const WIDTH = 720;
const ROW = 34;
const LEFT = 220;
const RIGHT = 64;

/** One bar per row, the best one strong. */
export function bars(rows, measure, label) {
  const best = Math.max(...rows.map((row) => row[measure] ?? 0));
  const span = WIDTH - LEFT - RIGHT;
  const height = rows.length * ROW + 12;
  const drawing = s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label });
  for (const share of [0.25, 0.5, 0.75, 1])
    drawing.append(s("path", { d: `M${LEFT + span * share} 0V${height}`, class: "grid" }));
  rows.forEach((row, at) => {
    const value = row[measure] ?? 0;
    const y = at * ROW + 8;
    drawing.append(
      s("text", { x: LEFT - 12, y: y + 16, class: "name" }, row.name),
      s(
        "rect",
        {
          x: LEFT,
          y,
          width: Math.max(2, span * value),
          height: ROW - 12,
          rx: 4,
          class: value === best ? "best" : "bar-of",
        },
        s("title", {}, `${row.name}: ${value.toFixed(4)}`),
      ),
      s(
        "text",
        { x: LEFT + span * value + 8, y: y + 16, class: value === best ? "value strong" : "value" },
        value.toFixed(3),
      ),
    );
  });
  return h("div", { class: "scrolls" }, drawing);
}

/** From the vector leg alone on the left to the keyword leg alone on the right. */
export function sweepLine(rows, measure, label) {
  const sorted = [...rows].sort((one, other) => keywordWeight(one) - keywordWeight(other));
  const values = sorted.map((row) => row[measure] ?? 0);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = high - low || 0.1;
  const x = (at) => 60 + ((WIDTH - 120) * at) / Math.max(1, sorted.length - 1);
  const y = (value) => 190 - ((value - low) / room) * 140;
  const best = values.indexOf(high);
  const drawing = s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} 250`, role: "img", "aria-label": label });
  drawing.append(s("path", { d: "M60 200H660", class: "grid" }));
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
    s("text", { x: 660, y: 228, class: "value middle" }, t("why.words")),
  );
  return h("div", { class: "scrolls" }, drawing);
}

/** What was said along the bottom, how often it was so upwards; on the line both are the same. */
export function reliabilityDots(dots, label) {
  const side = 220;
  const total = dots.reduce((sum, dot) => sum + dot.count, 0) || 1;
  const drawing = s("svg", { class: "chart", viewBox: `0 0 ${side + 70} ${side + 60}`, role: "img", "aria-label": label });
  drawing.append(s("path", { d: `M50 10V${side + 10}H${side + 50}`, class: "grid" }));
  drawing.append(s("path", { d: `M50 ${side + 10}L${side + 50} 10`, class: "grid" }));
  for (const dot of dots) {
    const place = { cx: 50 + side * dot.said, cy: side + 10 - side * dot.was, r: 3 + 16 * Math.sqrt(dot.count / total) };
    drawing.append(
      s("circle", { ...place, class: "dot" }, s("title", {}, `${dot.said.toFixed(2)} → ${dot.was.toFixed(2)} (${dot.count})`)),
    );
  }
  for (const value of [0, 0.5, 1]) {
    drawing.append(s("text", { x: 50 + side * value, y: side + 28, class: "value middle" }, String(value)));
    drawing.append(s("text", { x: 26, y: side + 14 - side * value, class: "value middle" }, String(value)));
  }
  drawing.append(s("text", { x: 50 + side / 2, y: side + 48, class: "value middle" }, label));
  return drawing;
}

function keywordWeight(row) {
  return row.keyword_weight / (row.vector_weight + row.keyword_weight || 1);
}
