// Skills: which there are, what one says, and scanning a folder for more.

import { ask } from "../api.js";
import { h, put } from "../dom.js";
import { icon } from "../icons.js";
import { follow, hasFailed } from "../jobs.js";
import { progressBar } from "../progress.js";
import { t } from "../language.js";
import { failure, toast } from "../messages.js";
import { command, empty, heading } from "../parts.js";
import { addressOf } from "../route.js";
import { sourceView } from "./source.js";

const MOST = 500;

export function skills(main, context) {
  const view = sourceView(main, "skills", () => (context.parts.length > 0 ? one(context.parts[0]) : list()));

  async function list() {
    const found = await ask("GET", `/skills?limit=${MOST}`);
    put(
      main,
      heading(t("skills.title"), t("skills.text")),
      h(
        "div",
        { class: "stack" },
        found.skills.length > 0
          ? h("ul", { class: "cards of-skills" }, found.skills.map(card))
          : empty("skills", t("skills.empty"), t("skills.empty.text"), command("homing skills scan skills/")),
        scanForm(),
      ),
    );
  }

  function card(skill) {
    return h(
      "li",
      {},
      h(
        "a",
        { href: addressOf("skills", [skill.id]), dataset: { stop: skill.id } },
        h("strong", {}, skill.name),
        h("span", { class: "muted" }, skill.description),
        h(
          "span",
          { class: "chips" },
          skill.tags.map((tag) => h("span", { class: "chip" }, tag)),
        ),
      ),
    );
  }

  function scanForm() {
    const folder = h("input", {
      class: "bare",
      "aria-label": t("skills.folder"),
      placeholder: t("skills.folder"),
      required: true,
    });
    const button = h("button", { class: "main" }, t("skills.scan"));
    const state = h("div", { class: "of-skills" });
    const form = h(
      "form",
      { class: "sheet stack" },
      h("div", { class: "row" }, h("div", { class: "field" }, folder), button),
      state,
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      const bar = progressBar();
      put(state, bar.element);
      try {
        const job = await follow(await ask("POST", "/skills/scan", { folder: folder.value.trim() }), bar.show);
        if (!hasFailed(job)) {
          toast(t("skills.scanned"));
          context.refreshCounts();
          await view.again();
        }
      } catch (error) {
        put(state);
        failure(error);
      } finally {
        button.disabled = false;
      }
    });
    return form;
  }

  async function one(id) {
    const skill = await ask("GET", `/skills/${encodeURIComponent(id)}`);
    put(
      main,
      h("a", { class: "back", href: addressOf("skills") }, icon("back"), t("skills.title")),
      heading(skill.name, skill.description),
      h(
        "div",
        { class: "chips of-skills" },
        skill.tags.map((tag) => h("span", { class: "chip" }, tag)),
      ),
      h("pre", { class: "sheet prose", tabindex: "0" }, skill.body || skill.description),
      h("p", { class: "small muted" }, skill.path),
    );
  }

  return view;
}
