// Text with its matching stretches marked.

import { h } from "./dom.js";

/** Nodes for `text`: the stretches in `spans` ([start, end] in characters), or else the `words`, are marked. */
export function highlighted(text, { spans = [], words = [] } = {}) {
  const nodes = [];
  let end = 0;
  for (const [from, to] of merged(spansOf(text, { spans, words }))) {
    if (from > end) nodes.push(text.slice(end, from));
    nodes.push(h("mark", {}, text.slice(from, to)));
    end = to;
  }
  if (end < text.length) nodes.push(text.slice(end));
  return nodes;
}

/** The part of a long text around its first match. */
export function excerpt(text, { spans = [], words = [] } = {}, length = 180) {
  const first = merged(spansOf(text, { spans, words }))[0];
  const start = first !== undefined && first[0] > length * 0.6 ? first[0] - Math.floor(length / 3) : 0;
  const cut = text.slice(start, start + length);
  return `${start > 0 ? "…" : ""}${cut}${start + length < text.length ? "…" : ""}`;
}

/** Where in a text it is to be marked, in units of the string: at `spans` ([start, end] in characters), or else at `words`. */
export function spansOf(text, { spans = [], words = [] } = {}) {
  return spans.length > 0 ? characterSpans(text, spans) : wordSpans(text, words);
}

function wordSpans(text, words) {
  const low = text.toLowerCase();
  // Where lower case has another length, places would not fit any more: then nothing is marked rather than the wrong thing.
  if (low.length !== text.length) return [];
  const found = [];
  for (const word of words) {
    const wanted = word.toLowerCase();
    if (wanted === "") continue;
    for (let at = low.indexOf(wanted); at >= 0 && found.length < 500; at = low.indexOf(wanted, at + wanted.length)) {
      found.push([at, at + wanted.length]);
    }
  }
  return found;
}

/** Spans count characters as Python does; an emoji is one of them and two units of a JavaScript string. */
function characterSpans(text, spans) {
  if (!/[\ud800-\udbff]/.test(text)) return spans.map(([from, to]) => [from, to]);
  const places = [0];
  for (const character of text) places.push(places[places.length - 1] + character.length);
  const last = places.length - 1;
  return spans.map(([from, to]) => [places[Math.min(from, last)], places[Math.min(to, last)]]);
}

/** In order, and none over another. */
export function merged(spans) {
  const sorted = [...spans].sort((one, other) => one[0] - other[0]);
  const out = [];
  for (const [from, to] of sorted) {
    const last = out[out.length - 1];
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else out.push([from, to]);
  }
  return out;
}
