// A document and its paragraphs: edit on one side, watch on the other which of them are embedded again.

import { ask } from "../api.js";
import { h, put } from "../dom.js";
import { icon } from "../icons.js";
import { number, t } from "../language.js";
import { failure, say, toast } from "../messages.js";
import { sureButton } from "../parts.js";
import { addressOf, go } from "../route.js";

const LOOK = 350;
const FADE = 2600;

/** {draw(), leave()} for one document; `chunk` is the id of a paragraph to show. */
export function editor(main, { project, name, chunk, changed }) {
  const address = `/documents/${encodeURIComponent(project)}/${encodeURIComponent(name)}`;
  // Until the stored text is here nothing can be written, and nothing saved: either would be lost, or lose what is stored.
  const text = h("textarea", { class: "writing", "aria-label": t("documents.body"), spellcheck: "false", readonly: true });
  const save = h("button", { type: "button", class: "main", disabled: true }, t("save"));
  const note = h("p", { class: "small muted", role: "status" });
  const list = h("ol", { class: "paragraphs" });
  const count = h("span", { class: "small muted" });
  let stored = "";
  let exists = false;
  let marks = new Map();
  let gone = [];
  let looking = null;
  let looks = 0;
  let left = false;

  async function draw() {
    put(main, frame());
    if (text.readOnly) await read();
    await look();
    if (chunk !== undefined)
      list.querySelector(`[data-chunk="${CSS.escape(chunk)}"]`)?.scrollIntoView({ block: "center" });
    if (stored === "") text.focus();
  }

  /** Brings what is stored, once: what somebody writes from then on is theirs, whatever else is shown meanwhile. */
  async function read() {
    const { documents } = await ask("GET", `/documents/${encodeURIComponent(project)}`);
    exists = documents.some((one) => one.id === name);
    stored = exists ? (await ask("GET", address)).text : "";
    if (left) return;
    text.value = stored;
    text.readOnly = false;
    save.disabled = false;
  }

  function frame() {
    const remove = sureButton(t("delete"), t("delete.sure"), async () => {
      try {
        await ask("DELETE", address);
        changed();
        go("documents");
      } catch (error) {
        failure(error);
      }
    });
    return h(
      "div",
      { class: "of-documents" },
      h("a", { class: "back", href: addressOf("documents") }, icon("back"), t("documents.back")),
      h(
        "div",
        { class: "head" },
        h("h1", {}, name),
        h("span", { class: "muted" }, project),
        h("div", { class: "aside row" }, remove, save),
      ),
      note,
      h(
        "div",
        { class: "desk" },
        text,
        h("section", { class: "watch" }, h("header", {}, h("h2", {}, t("documents.paragraphs")), count), list),
      ),
    );
  }

  async function keep() {
    if (save.disabled) return;
    save.disabled = true;
    const before = new Map(
      [...list.querySelectorAll("[data-chunk]")].map((one) => [one.dataset.chunk, one.dataset.text]),
    );
    try {
      const sent = text.value;
      const saved = await ask("PUT", address, { text: sent });
      stored = sent;
      exists = true;
      marks = new Map();
      for (const state of ["unchanged", "moved", "changed"]) for (const id of saved[state]) marks.set(id, state);
      gone = saved.removed.filter((id) => before.has(id)).map((id) => ({ id, text: before.get(id) }));
      const counts = Object.fromEntries(
        ["changed", "unchanged", "moved", "removed"].map((state) => [state, saved[state].length]),
      );
      put(note, text.value === sent ? t("documents.saved", counts) : t("documents.unsaved"));
      say(t("documents.saved", counts));
      changed();
      await look();
      setTimeout(() => {
        gone = [];
        list.querySelectorAll(".removed").forEach((one) => one.remove());
      }, FADE);
    } catch (error) {
      failure(error);
    } finally {
      save.disabled = false;
    }
  }

  /** Shows the paragraphs as they are, and looks again while some wait for their vector. */
  async function look() {
    clearTimeout(looking);
    looks += 1;
    const mine = looks;
    const chunks = exists ? (await ask("GET", `${address}/chunks`)).chunks : [];
    if (left || mine !== looks) return;
    const waiting = chunks.filter((one) => one.pending).length;
    put(
      count,
      `${t("documents.chunks", { n: number(chunks.length) })}${waiting > 0 ? ` · ${t("documents.pending", { n: waiting })}` : ""}`,
    );
    put(
      list,
      gone.map((one) => paragraph(one, "removed")),
      chunks.map((one) => paragraph(one, stateOf(one))),
    );
    if (chunks.length === 0 && gone.length === 0) put(list, h("li", { class: "muted" }, t("documents.start")));
    if (waiting > 0) looking = setTimeout(() => look().catch(failure), LOOK);
  }

  function stateOf(one) {
    const mark = marks.get(one.id);
    if (one.pending) return "pending";
    if (mark === "changed") return "done";
    return mark ?? "plain";
  }

  function paragraph(one, state) {
    const item = h(
      "li",
      { class: state, dataset: state === "removed" ? {} : { chunk: one.id, text: one.text } },
      state !== "plain" &&
        h(
          "span",
          { class: "state" },
          state === "done" ? icon("check") : state === "moved" ? icon("up") : null,
          t(state === "done" ? "state.changed" : `state.${state}`),
        ),
      h("span", { class: "says" }, one.text.length > 160 ? `${one.text.slice(0, 160)}…` : one.text),
    );
    if (state !== "removed" && one.start_offset !== undefined) {
      item.addEventListener("click", () => {
        text.focus();
        const units = unitsBefore(text.value, one.start_offset);
        text.setSelectionRange(units, units + one.text.length);
      });
    }
    if (one.id === chunk) item.classList.add("sought");
    return item;
  }

  text.addEventListener("input", () => put(note, text.value === stored ? "" : t("documents.unsaved")));
  save.addEventListener("click", keep);
  const keys = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
      event.preventDefault();
      keep();
    }
  };
  document.addEventListener("keydown", keys);

  return {
    draw,
    leave() {
      left = true;
      clearTimeout(looking);
      document.removeEventListener("keydown", keys);
      if (text.value !== stored) toast(t("documents.unsaved"));
    },
  };
}

/** Offsets count characters; a string of JavaScript counts units, two for an emoji. */
function unitsBefore(text, characters) {
  let units = 0;
  let counted = 0;
  for (const character of text) {
    if (counted === characters) break;
    counted += 1;
    units += character.length;
  }
  return units;
}
