// The panel beside the results: a column on a wide screen, a sheet from below on a phone.

import { h, put } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./language.js";

const OVER = window.matchMedia("(max-width: 1180px)");
const panel = document.getElementById("detail");
const body = document.getElementById("body");
let returnTo = null;
let whenClosed = null;

/** Shows `content`; focus goes back to `opener` when it is closed. */
export function openDetail({ label, className = "", content }, opener, onClose) {
  const inside = !panel.hidden && panel.contains(document.activeElement);
  const opening = panel.hidden;
  returnTo = opener;
  whenClosed = onClose;
  const close = h(
    "button",
    { type: "button", class: "quiet close", "aria-label": t("close"), on: { click: closeDetail } },
    icon("cross"),
  );
  panel.className = `detail ${className}`;
  panel.setAttribute("aria-label", label);
  put(panel, close, content);
  panel.hidden = false;
  body.classList.add("with-detail");
  // Where the panel covers the results, who uses the keyboard is taken along.
  if (inside || (opening && OVER.matches)) close.focus();
}

/** Whether the panel has a column of its own and covers nothing. */
export function detailIsBeside() {
  return !OVER.matches;
}

export function detailIsOpen() {
  return !panel.hidden;
}

export function closeDetail() {
  if (panel.hidden) return;
  const had = panel.contains(document.activeElement) || document.activeElement === document.body;
  panel.hidden = true;
  put(panel);
  body.classList.remove("with-detail");
  const told = whenClosed;
  whenClosed = null;
  told?.();
  if (had && returnTo?.isConnected) returnTo.focus();
  returnTo = null;
}
