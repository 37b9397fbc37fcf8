// What the server is doing: how many texts wait for their vector, and how long searches took. Read while it is looked at.

import { ask } from "./api.js";
import { columns, timeLine } from "./chart.js";
import { h, put } from "./dom.js";
import { number, t } from "./language.js";

const EVERY = 3000;
const MOST = 400;
const SEARCH = /(?:\/|:)(?:search|recall|retrieve|query)$/;
const BUCKET = /^homing_request_seconds_bucket\{(.*)\} (\S+)$/;
const WAITING = /^homing_pending_texts (\S+)$/m;

/** Samples stay while the page is open, whatever is shown meanwhile. */
const samples = [];

/** {element, start(), stop()}. */
export function activity() {
  const element = h("div", { class: "pair" });
  let timer = null;

  async function look() {
    const text = await ask("GET", "/metrics", undefined, { plain: true });
    samples.push({ at: Date.now(), value: Number(WAITING.exec(text)?.[1] ?? 0) });
    if (samples.length > MOST) samples.shift();
    put(element, queue(), latency(stepsOf(text)));
  }

  async function start() {
    clearInterval(timer);
    timer = setInterval(() => look().catch(stop), EVERY);
    await look();
  }

  function stop() {
    clearInterval(timer);
  }

  return { element, start, stop };
}

function queue() {
  const now = samples[samples.length - 1].value;
  const text = now === 0 ? t("queue.none") : t("queue.some", { n: number(now) });
  return sheet(t("queue.title"), text, samples.length > 1 && timeLine(samples, `${t("queue.title")}: ${text}`));
}

function latency(steps) {
  const total = steps.reduce((sum, one) => sum + one.count, 0);
  if (total === 0) return sheet(t("latency.title"), t("latency.none"));
  const within = (share) => {
    let seen = 0;
    return steps.find((one) => (seen += one.count) >= share * total).name;
  };
  const text = t("latency.some", { n: number(total), half: within(0.5), most: within(0.95) });
  const shown = steps.slice(
    steps.findIndex((one) => one.count > 0),
    steps.findLastIndex((one) => one.count > 0) + 1,
  );
  return sheet(t("latency.title"), text, columns(shown, `${t("latency.title")}: ${text}`));
}

function sheet(title, text, drawing) {
  return h("section", { class: "sheet" }, h("h2", {}, title), h("p", { class: "muted small" }, text), drawing);
}

/** [{name, count}]: how many searches took at most so long, and longer than the step before. */
function stepsOf(text) {
  const upTo = new Map();
  for (const line of text.split("\n")) {
    const found = BUCKET.exec(line);
    if (found === null || !SEARCH.test(/route="([^"]*)"/.exec(found[1])[1])) continue;
    const bound = Number(/le="([^"]*)"/.exec(found[1])[1].replace("+Inf", "Infinity"));
    upTo.set(bound, (upTo.get(bound) ?? 0) + Number(found[2]));
  }
  let before = 0;
  const bounds = [...upTo.keys()].sort((one, other) => one - other);
  return bounds.map((bound, at) => {
    const count = upTo.get(bound) - before;
    before = upTo.get(bound);
    return { name: Number.isFinite(bound) ? `≤ ${timeOf(bound)}` : `> ${timeOf(bounds[at - 1])}`, count };
  });
}

function timeOf(seconds) {
  return seconds < 1 ? `${number(seconds * 1000, seconds === 0.0025 ? 1 : 0)} ms` : `${number(seconds, seconds === 2.5 ? 1 : 0)} s`;
}
