// The panel beside the results: a column on a wide screen, a sheet from below on a phone.

import { h, put } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./language.js";

const panel = document.getElementById("detail");
const body = document.getElementById("body");
let returnTo = null;
let whenClosed = null;

/** Shows `content`; focus goes back to `opener` when it is closed. */
export function openDetail({ label, className = "", content }, opener, onClose) {
  const same = !panel.hidden && panel.contains(document.activeElement);
  if (whenClosed !== null && whenClosed.opener !== opener?.dataset?.hit) whenClosed = null;
  returnTo = opener;
  whenClosed = { run: onClose, opener: opener?.dataset?.hit };
  const close = h("button", { type: "button", class: "quiet close", "aria-label": t("close"), on: { click: closeDetail } }, icon("cross"));
  panel.className = `detail ${className}`;
  panel.setAttribute("aria-label", label);
  put(panel, close, content);
  panel.hidden = false;
  body.classList.add("with-detail");
  if (same) close.focus();
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
  whenClosed?.run?.();
  whenClosed = null;
  if (had && returnTo?.isConnected) returnTo.focus();
  returnTo = null;
}
