// A document: read it on one side, edit it on the other, and watch which of its paragraphs are embedded again.

import { ask } from "../api.js";
import { h, put } from "../dom.js";
import { icon } from "../icons.js";
import { number, t } from "../language.js";
import { failure, say, toast } from "../messages.js";
import { sureButton } from "../parts.js";
import { reading } from "../reading.js";
import { addressOf, go } from "../route.js";

const LOOK = 350;
const FADE = 2600;
const DRAW = 250;

/** {draw(), leave()} for one document; `chunk` is the id of a paragraph to show, `known` that there is such a document. */
export function editor(main, { project, name, chunk, known, changed }) {
  const address = `/documents/${encodeURIComponent(project)}/${encodeURIComponent(name)}`;
  // Until the stored text is here nothing can be written, and nothing saved: either would be lost, or lose what is stored.
  const text = h("textarea", {
    class: "writing",
    "aria-label": t("documents.body"),
    spellcheck: "false",
    readonly: true,
  });
  const save = h("button", { type: "button", class: "main", disabled: true }, t("save"));
  const note = h("p", { class: "small muted", role: "status" });
  const list = h("ol", { class: "paragraphs" });
  const count = h("span", { class: "small muted" });
  const desk = h("div", { class: "desk" });
  const read = reading((at) => select(at, at));
  let stored = "";
  let exists = known;
  let parts = [];
  let passage;
  let drawing = null;
  let marks = new Map();
  let gone = [];
  let looking = null;
  let looks = 0;
  let left = false;

  async function draw() {
    put(main, frame());
    if (text.readOnly) await fetchText();
    await look();
    show();
    if (passage !== undefined) {
      const row = list.querySelector(`[data-chunk="${CSS.escape(chunk)}"]`);
      row.parentElement.parentElement.scrollTop = row.offsetTop - row.parentElement.offsetTop;
      text.setSelectionRange(...passage);
      read.find();
    }
    if (stored === "") text.focus();
  }

  /** Where there is nothing to read yet, there is only the editor. */
  function show() {
    desk.classList.toggle("new", text.value.trim() === "");
    read.show(text.value, {
      passage: text.value === stored ? passage : undefined,
      parts: text.value === stored ? parts : [],
    });
  }

  function select(from, to) {
    text.focus();
    text.setSelectionRange(from, to);
    // A text area scrolls to what is typed, not to what is selected: as far down as the text before it is long.
    text.scrollTop = (text.scrollHeight * from) / Math.max(1, text.value.length) - text.clientHeight / 3;
  }

  /** Brings what is stored, once: what somebody writes from then on is theirs, whatever else is shown meanwhile. */
  async function fetchText() {
    if (!exists) {
      const { documents } = await ask("GET", `/documents/${encodeURIComponent(project)}`);
      exists = documents.some((one) => one.id === name);
    }
    const found = exists ? await ask("GET", address) : { text: "", parts: [] };
    stored = found.text;
    if (left) return;
    parts = inUnits(stored, found.parts);
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
      put(
        desk,
        read.element,
        h(
          "div",
          { class: "bench" },
          text,
          h(
            "section",
            { class: "watch", tabindex: "0", "aria-label": t("documents.paragraphs") },
            h("header", {}, h("h2", {}, t("documents.paragraphs")), count),
            list,
          ),
        ),
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
      // What the pages of a file were is no more known once its text is another.
      if (saved.changed.length + saved.removed.length > 0) parts = [];
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
    const chunks = exists ? (await ask("GET", `${address}/chunks?offset_unit=utf-16`)).chunks : [];
    if (left || mine !== looks) return;
    const sought = chunks.find((one) => one.id === chunk);
    passage = sought && [sought.start_offset, sought.end_offset];
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
        select(one.start_offset, one.end_offset);
      });
    }
    if (one.id === chunk) item.classList.add("sought");
    return item;
  }

  text.addEventListener("input", () => {
    put(note, text.value === stored ? "" : t("documents.unsaved"));
    clearTimeout(drawing);
    drawing = setTimeout(show, DRAW);
  });
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
      clearTimeout(drawing);
      document.removeEventListener("keydown", keys);
      if (text.value !== stored) toast(t("documents.unsaved"));
    },
  };
}

/** Where parts begin is counted in characters; a string of JavaScript counts units, two for an emoji. */
function inUnits(text, parts) {
  if (!/[\ud800-\udbff]/.test(text)) return parts;
  const places = [0];
  for (const character of text) places.push(places[places.length - 1] + character.length);
  return parts.map((one) => ({ ...one, start: places[Math.min(one.start, places.length - 1)] }));
}
