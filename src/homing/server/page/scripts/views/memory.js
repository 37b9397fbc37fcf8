// Memory: what is remembered, remembering more, forgetting.

import { ask } from "../api.js";
import { h, put } from "../dom.js";
import { language, named, t } from "../language.js";
import { failure, toast } from "../messages.js";
import { command, empty, field, heading, sureButton } from "../parts.js";
import { sourceView } from "./source.js";

const LOOK = 500;
const KINDS = ["knowledge", "observation", "reflection", "learning"];

export function memory(main, context) {
  const waiting = h("span", { class: "chip of-memory", id: "waiting" });
  const view = sourceView(main, "memory", list);
  let looking = null;

  async function list() {
    const found = await ask("GET", "/memory?limit=200");
    showWaiting(found.waiting);
    put(
      main,
      heading(t("memory.title"), t("memory.text"), waiting),
      h(
        "div",
        { class: "stack of-memory" },
        form(),
        found.entries.length > 0
          ? h("ul", { class: "entries" }, found.entries.map(entry))
          : empty("memory", t("memory.empty"), t("memory.empty.text"), command('homing memory remember "用户不吃辣"')),
      ),
    );
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
    return h(
      "li",
      {},
      h("p", {}, one.text),
      h(
        "div",
        { class: "under" },
        h("span", { class: "chip" }, named("kind", one.collection)),
        one.session_key && h("span", { class: "chip plain" }, one.session_key),
        one.tags.map((tag) => h("span", { class: "chip plain" }, tag)),
        h(
          "time",
          { class: "small muted", datetime: when.toISOString() },
          when.toLocaleString(language() === "zh" ? "zh-CN" : "en", { dateStyle: "medium", timeStyle: "short" }),
        ),
        forget,
      ),
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
