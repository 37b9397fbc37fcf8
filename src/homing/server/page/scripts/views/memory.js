// Memory: what is remembered, remembering more, forgetting.

import { ask } from "../api.js";
import { openDetail } from "../detail.js";
import { h, put } from "../dom.js";
import { language, named, t } from "../language.js";
import { everything, listing } from "../list.js";
import { markdown } from "../markdown.js";
import { failure, toast } from "../messages.js";
import { command, empty, field, heading, sureButton } from "../parts.js";
import { sourceView } from "./source.js";

const LOOK = 500;
const PAGE = 1000;
const MOST = 10_000;
const KINDS = ["knowledge", "observation", "reflection", "learning"];

export function memory(main, context) {
  const waiting = h("span", { class: "chip of-memory", id: "waiting" });
  const view = sourceView(main, "memory", list);
  let looking = null;

  async function list() {
    let first = null;
    const found = await everything(async (offset) => {
      if (offset > MOST) return [];
      const page = await ask("GET", `/memory?limit=${PAGE}&offset=${offset}`);
      first ??= page;
      return page.entries;
    }, PAGE);
    if (!view.browses()) return;
    showWaiting(first.waiting);
    const rows = listing({
      name: "memory",
      className: "entries of-memory",
      of: (one) => `${one.text} ${one.session_key} ${one.tags.join(" ")}`,
      sorts: [
        ["newest", (a, b) => b.created - a.created],
        ["oldest", (a, b) => a.created - b.created],
      ],
      groups: [
        ["none", undefined],
        ["kind", (one) => named("kind", one.collection)],
        ["session", (one) => one.session_key],
      ],
      row: entry,
    });
    put(
      main,
      heading(t("memory.title"), t("memory.text"), waiting),
      h(
        "div",
        { class: "stack of-memory" },
        form(),
        found.length > 0
          ? rows.element
          : empty("memory", t("memory.empty"), t("memory.empty.text"), command(t("memory.example"))),
      ),
    );
    if (found.length > 0) rows.show(found);
  }

  /** What was just remembered is found a moment later: until then the page says so. */
  function showWaiting(count) {
    clearTimeout(looking);
    waiting.hidden = count === 0;
    put(waiting, t("memory.waiting", { n: count }));
    if (count > 0)
      looking = setTimeout(
        () =>
          ask("GET", "/memory?limit=1")
            .then((found) => showWaiting(found.waiting))
            .catch(() => {}),
        LOOK,
      );
  }

  function entry(one) {
    const when = new Date(one.created * 1000);
    const forget = sureButton(t("memory.forget"), t("memory.forget.sure"), async () => {
      try {
        await ask("DELETE", `/memory/${encodeURIComponent(one.id)}?collection=${one.collection}`);
        context.refreshCounts();
        await view.again();
      } catch (error) {
        failure(error);
      }
    });
    const about = [
      h("span", { class: "chip" }, named("kind", one.collection)),
      one.session_key && h("span", { class: "chip plain" }, one.session_key),
      one.tags.map((tag) => h("span", { class: "chip plain" }, tag)),
      h(
        "time",
        { class: "small muted", datetime: when.toISOString() },
        when.toLocaleString(language() === "zh" ? "zh-CN" : "en", { dateStyle: "medium", timeStyle: "short" }),
      ),
    ];
    const says = h(
      "button",
      { type: "button", class: "says", dataset: { stop: one.id }, "aria-controls": "detail" },
      h("span", {}, one.text),
    );
    says.addEventListener("click", () =>
      openDetail({ label: t("memory.title"), className: "of-memory", content: whole(one, about) }, says),
    );
    return [says, h("div", { class: "under" }, about.map(copied), forget)];
  }

  /** All of it, where the list shows the beginning. */
  function whole(one, about) {
    return h(
      "article",
      { class: "why" },
      h("h2", {}, named("kind", one.collection)),
      h("div", { class: "prose" }, markdown(one.text, { level: 3 })),
      h("div", { class: "under" }, about.map(copied)),
    );
  }

  function form() {
    const text = h("textarea", { rows: "2", required: true, maxlength: "100000" });
    const kind = h(
      "select",
      {},
      KINDS.map((one) => h("option", { value: one }, named("kind", one))),
    );
    const session = h("input", { maxlength: "200" });
    const button = h("button", { class: "main" }, t("memory.keep"));
    const made = h(
      "form",
      { class: "sheet stack", "aria-label": t("memory.new") },
      field(t("memory.new"), text),
      h("div", { class: "row" }, field(t("memory.kind"), kind), field(t("memory.session"), session), button),
    );
    made.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (text.value.trim() === "") return;
      button.disabled = true;
      try {
        await ask("POST", "/memory/remember", {
          text: text.value.trim(),
          collection: kind.value,
          session_key: session.value.trim(),
        });
        toast(t("memory.kept"));
        context.refreshCounts();
        await view.again();
      } catch (error) {
        failure(error);
      } finally {
        button.disabled = false;
      }
    });
    return made;
  }

  return {
    ...view,
    leave: () => {
      clearTimeout(looking);
      view.leave();
    },
  };
}

/** The same again, for another place. */
function copied(part) {
  return Array.isArray(part) ? part.map(copied) : part instanceof Node ? part.cloneNode(true) : part;
}
