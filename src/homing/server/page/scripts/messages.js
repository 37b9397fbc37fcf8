// What the page says besides its content: a toast, a failure, the notice of a degraded search, a word to a screen reader.

import { h, put } from "./dom.js";
import { icon } from "./icons.js";
import { t, told } from "./language.js";
import { addressOf } from "./route.js";

const toasts = document.getElementById("toasts");
const notice = document.getElementById("notice");
const said = document.getElementById("said");
let down = null;

export function toast(text, { bad = false, code = "", more = "" } = {}) {
  const one = h(
    "div",
    { class: bad ? "toast bad" : "toast" },
    text,
    code && h("code", {}, code),
    more && h("p", { class: "small", lang: "en" }, more),
  );
  toasts.append(one);
  setTimeout(() => one.remove(), bad ? 8000 : 3500);
}

/** Shows what went wrong; a request that was taken back is nothing to speak of. */
export function failure(error) {
  if (error.name === "AbortError") return;
  // What the server did not say is a mistake of the page: it belongs in the console too.
  if (error.code === undefined) console.error(error);
  if (error.code === "NETWORK") toast(t("error.network"), { bad: true });
  else {
    const plain = error.message || t("error.plain");
    const own = told(error.notice) || plain;
    toast(own, { bad: true, code: error.code, more: own === plain ? "" : plain });
  }
}

/** Tells a person who does not see the page what changed. */
export function say(text) {
  put(said, text);
}

export function isDegraded() {
  return down !== null;
}

/** The first degraded one of some answers, or none: the notice appears and goes with it. */
export function tellDegraded(answers) {
  const first = answers.find((answer) => answer.degraded) ?? null;
  if (first === null && down !== null) toast(t("recovered"));
  down = first;
  drawNotice();
}

/** Nothing is asked any more: the notice goes without a word. */
export function forgetDegraded() {
  down = null;
  drawNotice();
}

export function drawNotice() {
  notice.hidden = down === null;
  if (down === null) return put(notice);
  return put(
    notice,
    icon("warn"),
    h("strong", {}, told(down.notice) || t("degraded.plain")),
    down.reason && h("code", {}, down.reason),
    h("a", { href: addressOf("health") }, t("degraded.action")),
  );
}
