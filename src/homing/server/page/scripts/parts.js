// Small things that several views show.

import { ask } from "./api.js";
import { h, put } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./language.js";

const SURE_FOR = 3000;
const OVER_DATA = /^homing (skills|documents|memory|devices|knowledge|eval|doctor|repair|providers|models (add|default|list))\b(?!.*: )/;

/** A title with a sentence under it, and what stands to its right. */
export function heading(title, text, ...aside) {
  return h(
    "div",
    { class: "head" },
    h("h1", {}, title),
    aside.length > 0 && h("div", { class: "aside row" }, aside),
    text && h("p", {}, text),
  );
}

/** What to do next, where there is nothing yet. */
export function empty(sign, title, text, ...next) {
  return h(
    "section",
    { class: `empty of-${sign}` },
    icon(sign, { class: "sign" }),
    h("h2", {}, title),
    h("p", {}, text),
    next,
  );
}

/** A command of the shell, to be copied; it names the data folder where that is not the user's own. */
export function command(text) {
  const code = h("code", {}, text);
  const button = h("button", { type: "button", class: "quiet" }, icon("copy"));
  const say = (line) => {
    // An option is not broken after its hyphens.
    put(code, line.split(/(\s+)/).map((part) => (part.startsWith("--") ? h("span", {}, part) : part)));
    button.setAttribute("aria-label", `${t("copy")}: ${line}`);
  };
  say(text);
  if (OVER_DATA.test(text)) dataFolder().then((folder) => folder && say(`${text} --data ${quoted(folder)}`));
  button.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(code.textContent).catch(() => {});
    put(button, icon("check"));
    setTimeout(() => put(button, icon("copy")), 1500);
  });
  return h("div", { class: "command" }, code, button);
}

let folderAsked = null;
function dataFolder() {
  folderAsked ??= ask("GET", "/health").then(
    (found) => found.data,
    () => null,
  );
  return folderAsked;
}

function quoted(word) {
  return /[^\w@%+=:,./-]/.test(word) ? `'${word.replaceAll("'", "'\\''")}'` : word;
}

/** A button that asks once more before it does what cannot be undone. */
export function sureButton(label, sure, act) {
  const button = h("button", { type: "button", class: "quiet danger" }, label);
  let armed = null;
  button.addEventListener("click", () => {
    if (armed === null) {
      put(button, sure);
      button.classList.add("sure");
      armed = setTimeout(() => {
        armed = null;
        put(button, label);
        button.classList.remove("sure");
      }, SURE_FOR);
      return;
    }
    clearTimeout(armed);
    armed = null;
    button.disabled = true;
    act();
  });
  return button;
}

/** A labelled field; `control` is an input, select or textarea. */
export function field(label, control) {
  return h("label", { class: "field" }, h("span", {}, label), control);
}

/** One of several, as buttons side by side. */
export function segments(label, choices, chosen, choose) {
  return h(
    "div",
    { class: "segments", role: "group", "aria-label": label },
    choices.map(([value, text]) =>
      h(
        "button",
        { type: "button", "aria-pressed": String(value === chosen), on: { click: () => choose(value) } },
        text,
      ),
    ),
  );
}

/** A button that opens the file chooser. */
export function fileButton(label, accept, choose, { several = false } = {}) {
  const input = h("input", {
    type: "file",
    accept,
    multiple: several,
    class: "unseen",
    tabindex: "-1",
    "aria-hidden": "true",
  });
  input.addEventListener("change", () => {
    const files = [...input.files];
    input.value = "";
    if (files.length > 0) choose(files);
  });
  return [input, h("button", { type: "button", on: { click: () => input.click() } }, icon("up"), label)];
}

/** Files dropped anywhere on an element. */
export function takesFiles(element, choose) {
  element.addEventListener("dragover", (event) => {
    event.preventDefault();
    element.classList.add("dropping");
  });
  element.addEventListener("dragleave", () => element.classList.remove("dropping"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    element.classList.remove("dropping");
    const files = [...event.dataTransfer.files];
    if (files.length > 0) choose(files);
  });
}
