// The page without a mouse.

import { closeDetail, detailIsOpen } from "./detail.js";
import { h } from "./dom.js";
import { t } from "./language.js";
import { go } from "./route.js";

/** `frame` has the box, the main element, the names of the views, `speakOther` and `clear`. */
export function listenToKeys(frame) {
  document.getElementById("keys").addEventListener("click", showKeys);
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") return escape(event, frame);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") return move(event, frame);
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (event.key === "/") {
      event.preventDefault();
      frame.box.focus();
      frame.box.select();
    } else if (event.key === "?") {
      showKeys();
    } else if (event.key === "l") {
      frame.speakOther();
    } else if (event.key === "t") {
      document.getElementById("theme").click();
    } else if (/^[0-9]$/.test(event.key) && frame.views.length >= (Number(event.key) || 10)) {
      go(frame.views[(Number(event.key) || 10) - 1], [], frame.box.value.trim());
    }
  });
}

function isTyping(element) {
  return element.matches?.("input, textarea, select, [contenteditable]");
}

/** One press takes back what is in front: an explanation that is looked at, or the question, wherever the focus is. */
function escape(event, frame) {
  const inBox = event.target === frame.box;
  if (detailIsOpen() && !inBox) {
    event.preventDefault();
    closeDetail();
  } else if (frame.box.value !== "" && (inBox || !isTyping(event.target))) {
    event.preventDefault();
    closeDetail();
    frame.clear();
  } else if (inBox) {
    frame.box.blur();
  } else if (!event.target.matches?.("textarea")) {
    frame.box.focus();
  }
}

/** From the box to the filter of a list or into the results, along them, and back. */
function move(event, frame) {
  const stops = [...frame.main.querySelectorAll("[data-hit], [data-stop]")];
  const way = [frame.box, ...frame.main.querySelectorAll("[data-filter]"), ...stops];
  const here = document.activeElement;
  let at = way.indexOf(here);
  if (stops.length === 0 || (at < 0 && here !== document.body && here !== frame.main)) return;
  if (at < 0) at = way.length - stops.length - 1;
  event.preventDefault();
  way[Math.max(0, Math.min(at + (event.key === "ArrowDown" ? 1 : -1), way.length - 1))].focus();
}

function showKeys() {
  const rows = [
    [["/"], "keys.search"],
    [["↓", "↑"], "keys.move"],
    [["Enter"], "keys.open"],
    [["Esc"], "keys.escape"],
    [["1", "…", "9"], "keys.tabs"],
    [["l"], "keys.language"],
    [["t"], "keys.theme"],
    [["Ctrl", "S"], "keys.save"],
    [["?"], "keys.this"],
  ];
  const dialog = h(
    "dialog",
    { id: "keys-dialog", "aria-label": t("keys") },
    h("h2", {}, t("keys")),
    h(
      "dl",
      {},
      rows.map(([keys, words]) => [
        h(
          "dt",
          {},
          keys.map((key) => [h("kbd", {}, key), " "]),
        ),
        h("dd", {}, t(words)),
      ]),
    ),
    h("form", { method: "dialog" }, h("button", { class: "main" }, t("close"))),
  );
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
}
