// The frame: the box, the rail, the controls, the keys; and which view is shown.

import { ask, keepToken, onTokenNeeded } from "./api.js";
import { closeDetail } from "./detail.js";
import { h, put } from "./dom.js";
import { icon } from "./icons.js";
import { listenToKeys } from "./keys.js";
import { language, number, t, toggleLanguage } from "./language.js";
import { drawNotice, failure, forgetDegraded, isDegraded } from "./messages.js";
import { addressOf, noteQuery, readRoute } from "./route.js";
import { sentencesFor } from "./sentences.js";
import { applyTheme, nextTheme, theme } from "./theme.js";
import { all } from "./views/all.js";
import { devices } from "./views/devices.js";
import { documents } from "./views/documents.js";
import { evaluation } from "./views/evaluation.js";
import { guide } from "./views/guide.js";
import { health } from "./views/health.js";
import { map } from "./views/map.js";
import { memory } from "./views/memory.js";
import { models } from "./views/models.js";
import { skills } from "./views/skills.js";

const VIEWS = { all, skills, documents, memory, devices, map, models, health, evaluation, guide };
const NAMES = Object.keys(VIEWS);
const PAUSE = 160;
const LOOK_AGAIN = 2500;
const NARROW = window.matchMedia("(max-width: 600px)");

const main = document.getElementById("main");
const box = document.getElementById("query");
const busy = document.getElementById("busy");
const counts = {};
let said;
let shown = null;
let waiting = null;

/** Draws the view of the address; the one that is shown already only hears the question. */
function show() {
  const route = readRoute();
  const name = route.view in VIEWS ? route.view : "all";
  const where = JSON.stringify([name, route.parts]);
  const key = `${where} ${language()}`;
  if (document.activeElement !== box || box.value.trim() !== route.query) box.value = route.query;
  if (shown?.key !== key) {
    clearTimeout(waiting);
    shown?.view.leave?.();
    closeDetail();
    if (shown?.where !== where) forgetDegraded();
    main.className = `view-${name}`;
    // A place of its own: what a view that was left still draws is seen by nobody.
    const place = h("div", {}, h("p", { class: "loading muted" }, t("loading")));
    put(main, place);
    const context = {
      parts: route.parts,
      query: () => box.value.trim(),
      setQuery,
      refreshCounts,
      refresh: () => hear(box.value.trim()),
    };
    shown = { key, where, name, view: VIEWS[name](place, context) };
    window.scrollTo(0, 0);
  }
  drawFrame();
  hear(route.query);
}

async function hear(query, { again = false } = {}) {
  clearTimeout(waiting);
  const mine = shown;
  if (!again) busy.classList.toggle("on", query !== "");
  try {
    await mine.view.hear?.(query);
  } catch (error) {
    if (!again) failure(error);
  }
  if (mine !== shown) return;
  if (!again) busy.classList.remove("on");
  // A model that is back shows by itself, without anybody typing.
  clearTimeout(waiting);
  if (isDegraded()) waiting = setTimeout(() => hear(box.value.trim(), { again: true }), LOOK_AGAIN);
}

function setQuery(text) {
  box.value = text;
  noteQuery(text);
  box.focus();
  hear(text);
}

let typing = null;
function typed() {
  clearTimeout(typing);
  typing = setTimeout(() => {
    noteQuery(box.value.trim());
    drawRail();
    hear(box.value.trim());
  }, PAUSE);
}

function listenToBox() {
  // While a Chinese word is being composed, its letters are no question yet.
  box.addEventListener("input", (event) => {
    if (!event.isComposing) typed();
  });
  box.addEventListener("compositionend", typed);
  document.getElementById("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(typing);
    noteQuery(box.value.trim());
    if (shown.view.enter) shown.view.enter(box.value.trim());
    else hear(box.value.trim());
  });
}

function drawFrame() {
  document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
  document.title = shown.name === "all" ? "Homing" : `${t(`tab.${shown.name}`)} · Homing`;
  put(document.getElementById("skip"), t("skip"));
  put(document.getElementById("query-label"), t("search.label"));
  const asks = ["skills", "documents", "memory", "devices", "map"].includes(shown.name)
    ? `search.${shown.name}`
    : "search.all";
  box.placeholder = t(NARROW.matches && asks === "search.all" ? "search.label" : asks);
  const languages = document.getElementById("language");
  put(languages, t("language.short"));
  languages.setAttribute("aria-label", t("language"));
  languages.title = t("language");
  const themes = document.getElementById("theme");
  put(themes, icon("theme", { class: `theme-${theme()}` }));
  themes.setAttribute("aria-label", t(`theme.${theme()}`));
  themes.title = t(`theme.${theme()}`);
  const keys = document.getElementById("keys");
  keys.setAttribute("aria-label", t("keys"));
  keys.title = t("keys");
  drawRail();
  drawNotice();
}

function drawRail() {
  const rail = document.getElementById("rail");
  rail.setAttribute("aria-label", t("nav"));
  put(
    rail,
    NAMES.map((name) => [
      name === "map" && h("hr"),
      h(
        "a",
        {
          class: `of-${name}`,
          href: addressOf(name, [], box.value.trim()),
          "aria-current": name === shown.name ? "page" : null,
          dataset: { view: name },
        },
        icon(name),
        t(`tab.${name}`),
        counts[name] > 0 && h("span", { class: "count" }, number(counts[name])),
      ),
    ]),
  );
  rail.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

/** How much there is of each source; what cannot be asked has no count. */
async function refreshCounts() {
  const asked = {
    skills: ask("GET", "/skills?limit=1").then((found) => found.total),
    documents: ask("GET", "/documents").then((found) => found.projects.reduce((sum, one) => sum + one.documents, 0)),
    memory: ask("GET", "/memory?limit=1").then((found) => Object.values(found.counts).reduce((sum, one) => sum + one, 0)),
    devices: ask("GET", "/devices").then((found) => {
      [said] = sentencesFor(found);
      return found.devices.length;
    }),
  };
  await Promise.all(
    Object.entries(asked).map(([name, one]) =>
      one.then(
        (count) => (counts[name] = count),
        () => delete counts[name],
      ),
    ),
  );
  drawRail();
  return { ...counts, sentence: said };
}

function speakOther() {
  toggleLanguage();
  show();
}

function askForToken() {
  const field = h("input", { type: "password", class: "bare", autocomplete: "off", "aria-label": t("token.label") });
  const dialog = h(
    "dialog",
    { "aria-label": t("token.title") },
    h(
      "form",
      { method: "dialog", class: "stack" },
      h("h2", {}, t("token.title")),
      h("p", { class: "muted" }, t("token.text")),
      field,
      h("button", { class: "main" }, t("token.use")),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      keepToken(field.value.trim());
      dialog.remove();
      resolve();
    });
  });
}

applyTheme();
let tokenAsked = null;
onTokenNeeded(() => (tokenAsked ??= askForToken().finally(() => (tokenAsked = null))));
document.getElementById("skip").addEventListener("click", (event) => {
  // The address after # belongs to the views.
  event.preventDefault();
  main.focus();
});
document.getElementById("language").addEventListener("click", speakOther);
document.getElementById("theme").addEventListener("click", () => {
  nextTheme();
  drawFrame();
});
listenToBox();
listenToKeys({ box, main, views: NAMES, speakOther, clear: () => setQuery("") });
window.addEventListener("hashchange", show);
show();
refreshCounts().catch(failure);
