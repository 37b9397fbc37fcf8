// The home: a sentence in the box, the devices it means on the floor plan, and how it was understood.

import { ask } from "../api.js";
import { h, put } from "../dom.js";
import { putInHome } from "../examples.js";
import { FloorPlan } from "../floor.js";
import { icon } from "../icons.js";
import { named, t } from "../language.js";
import { failure, forgetDegraded, say, tellDegraded, toast } from "../messages.js";
import { sentencesFor } from "../sentences.js";
import { command, empty, fileButton, heading, takesFiles } from "../parts.js";

/** How many of the devices that a sentence means are listed with their reasons. */
const MOST = 24;

export function devices(main, context) {
  const answer = h("div", { class: "answer", "aria-live": "polite" });
  let plan = null;
  let state = null;
  let latest = 0;
  let aborting = null;

  async function draw() {
    const home = await ask("GET", "/devices");
    const chooser = fileButton(t("devices.file"), ".json,.jsonl", load);
    if (home.devices.length === 0) {
      const example = h("button", { type: "button", class: "main" }, t("devices.example"));
      example.addEventListener("click", () => changed(putInHome()));
      const hint = empty(
        "devices",
        t("devices.empty"),
        t("devices.empty.text"),
        h("div", { class: "row" }, example, chooser),
        command("homing devices load home.json"),
      );
      takesFiles(hint, load);
      put(main, heading(t("devices.title"), ""), hint);
      plan = null;
      return;
    }
    plan = new FloorPlan(home);
    const chips = h(
      "div",
      { class: "chips of-devices" },
      sentencesFor(home).map((text) =>
        h("button", { type: "button", class: "chip", on: { click: () => context.setQuery(text) } }, text),
      ),
    );
    const page = h(
      "div",
      { class: "of-devices stack" },
      heading(t("devices.title"), t("devices.text"), chooser),
      chips,
      answer,
      plan.element,
    );
    takesFiles(page, load);
    put(main, page);
  }

  async function load([file]) {
    await changed(file.text().then((text) => ask("PUT", "/devices", homeOf(text))));
  }

  async function changed(work) {
    try {
      await work;
      toast(t("devices.loaded"));
      context.refreshCounts();
      state = null;
      await draw();
      await hear(context.query());
    } catch (error) {
      failure(error);
    }
  }

  async function hear(query) {
    aborting?.abort();
    const mine = (latest += 1);
    if (plan === null) await draw();
    if (plan === null || mine !== latest) return;
    if (query === "") {
      forgetDegraded();
      plan.light({});
      put(answer);
      return;
    }
    aborting = new AbortController();
    const understood = await ask(
      "POST",
      "/devices/ask",
      { text: query, ...(state ? { state } : {}) },
      { signal: aborting.signal },
    );
    if (mine !== latest) return;
    tellDegraded([understood]);
    show(understood);
    answer.understood = understood;
  }

  function show(understood) {
    const of = (decision) =>
      understood.steps.filter((step) => step.decision === decision).flatMap((step) => step.candidates);
    plan.light({
      meant: [...of("act"), ...of("answer")],
      asked: [...of("ask"), ...of("confirm")],
      excluded: understood.steps.flatMap((step) => step.ir.scope_exclude ?? []),
    });
    put(
      answer,
      understood.steps.map((step) => sentence(step)),
    );
  }

  function sentence(step) {
    return h(
      "section",
      { class: `step ${step.decision}` },
      h(
        "header",
        {},
        h(
          "span",
          { class: "decision" },
          icon({ act: "check", answer: "check", confirm: "warn", ask: "warn" }[step.decision] ?? "cross"),
          t(`devices.${step.decision}`),
        ),
        h("span", { class: "mood" }, named("mood", step.ir.mood)),
        step.question && h("p", {}, step.question),
      ),
      (step.decision === "confirm" || step.hint === "complaint") &&
        h(
          "div",
          { class: "row" },
          h("button", { type: "button", class: "main", on: { click: () => reply(t("devices.yes")) } }, t("devices.yes")),
          h("button", { type: "button", on: { click: () => context.setQuery("") } }, t("devices.no")),
        ),
      step.suggestions.length > 0 &&
        h(
          "div",
          { class: "chips" },
          step.suggestions.slice(0, MOST).map((one) =>
            h("button", { type: "button", class: "chip", on: { click: () => reply(one) } }, one),
          ),
        ),
      h("div", { class: "chips" }, understoodAs(step.ir)),
      step.candidates.length > 0 && h("ul", { class: "candidates" }, step.candidates.slice(0, MOST).map(candidate)),
      step.candidates.length > MOST &&
        h("p", { class: "small muted" }, t("devices.more", { n: step.candidates.length - MOST })),
    );
  }

  /** A suggestion answers the question that was asked: the dialogue goes on with it. */
  function reply(text) {
    state = answer.understood?.state ?? null;
    context.setQuery(text);
  }

  async function enter(query) {
    if (query === "" || plan === null) return;
    await hear(query).catch(failure);
    const understood = answer.understood;
    if (understood === undefined) return;
    const done = understood.steps.filter((step) => step.decision === "act").flatMap((step) => step.candidates);
    plan.perform(done);
    state = understood.state;
    if (done.length > 0) say(t("devices.done", { n: done.length }));
  }

  return {
    hear,
    enter,
    leave: () => {
      latest += 1;
      aborting?.abort();
    },
  };
}

function understoodAs(ir) {
  const value = ir.value;
  const said = [
    ["devices.action", ir.action],
    ["devices.how-many", ir.quantifier && ir.quantifier !== "one" ? named("quantifier", ir.quantifier) : ""],
    ["devices.where", (ir.scope_include ?? []).join("、")],
    ["devices.except", (ir.scope_exclude ?? []).join("、")],
    ["devices.type", ir.type_word || ir.type_hint],
    ["devices.name", ir.name_hint],
    [
      "devices.value",
      value &&
        [value.relative ? "±" : "", value.number ?? value.text ?? value.extreme ?? "", value.unit ?? ""].join(""),
    ],
  ];
  return said
    .filter(([, text]) => text)
    .map(([key, text]) =>
      h("span", { class: key === "devices.except" ? "chip except" : "chip plain" }, h("b", {}, t(key)), " ", text),
    );
}

function candidate(one) {
  const command = [one.command, one.value ?? one.change]
    .filter((part) => part !== null && part !== undefined)
    .join(" ");
  return h(
    "li",
    { dataset: { candidate: one.id } },
    h("strong", {}, one.name),
    h("span", { class: "muted small" }, one.room ?? ""),
    command && h("code", {}, command),
    h("span", { class: "why-here small muted" }, one.reasons.map((reason) => named("reason", reason)).join(" · ")),
  );
}

/** Our own form, a list of devices, or JSON lines of them. */
function homeOf(text) {
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    data = text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line) => JSON.parse(line));
  }
  return Array.isArray(data) ? { devices: data } : data;
}
