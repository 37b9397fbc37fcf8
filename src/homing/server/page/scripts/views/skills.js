// Skills: which there are, what one says, and scanning a folder for more.

import { ask } from "../api.js";
import { h, put } from "../dom.js";
import { icon } from "../icons.js";
import { follow, hasFailed } from "../jobs.js";
import { t } from "../language.js";
import { byName, everything, listing } from "../list.js";
import { markdown } from "../markdown.js";
import { failure, toast } from "../messages.js";
import { command, empty, heading } from "../parts.js";
import { progressBar } from "../progress.js";
import { addressOf } from "../route.js";
import { sourceView } from "./source.js";

const PAGE = 1000;
const TAGS = 3;

export function skills(main, context) {
  const [id, passage] = context.parts;
  const view = sourceView(main, "skills", () => (id === undefined ? list() : one()));

  async function list() {
    const found = await everything(async (offset) => {
      const page = await ask("GET", `/skills?limit=${PAGE}&offset=${offset}`);
      return page.skills;
    }, PAGE);
    if (!view.browses()) return;
    const rows = listing({
      name: "skills",
      className: "of-skills",
      of: (skill) => `${skill.name} ${skill.description} ${skill.tags.join(" ")}`,
      sorts: [
        ["name", (a, b) => byName(a.name, b.name)],
        ["folder", (a, b) => byName(a.path, b.path)],
      ],
      groups: [
        ["none", undefined],
        ["folder", (skill) => skill.path.replace(/[/\\][^/\\]*$/, "")],
        ["tag", (skill) => skill.tags[0] ?? ""],
      ],
      row,
    });
    const form = scanForm();
    put(
      main,
      heading(t("skills.title"), t("skills.text"), form.button),
      h(
        "div",
        { class: "stack" },
        form.element,
        found.length > 0
          ? rows.element
          : empty("skills", t("skills.empty"), t("skills.empty.text"), command("homing skills scan skills/")),
      ),
    );
    if (found.length > 0) rows.show(found);
    else form.open();
  }

  function row(skill) {
    return h(
      "a",
      { href: addressOf("skills", [skill.id]), dataset: { stop: skill.id } },
      h("strong", {}, skill.name),
      h("span", { class: "about" }, skill.description),
      h(
        "span",
        { class: "chips" },
        skill.tags.slice(0, TAGS).map((tag) => h("span", { class: "chip" }, tag)),
      ),
    );
  }

  /** {button, element, open()}: the button stands beside the title and shows the form below it. */
  function scanForm() {
    const folder = h("input", {
      class: "bare",
      "aria-label": t("skills.folder"),
      placeholder: t("skills.folder"),
      required: true,
    });
    const submit = h("button", { class: "main" }, t("skills.scan"));
    const state = h("div", { class: "of-skills" });
    const element = h(
      "form",
      { class: "sheet stack", hidden: true, id: "scan" },
      h("div", { class: "row" }, h("div", { class: "field" }, folder), submit),
      state,
    );
    const button = h("button", { type: "button", "aria-controls": "scan" }, icon("plus"), t("skills.add"));
    const open = (shown) => {
      element.hidden = !shown;
      button.setAttribute("aria-expanded", String(shown));
    };
    open(false);
    button.addEventListener("click", () => {
      open(element.hidden);
      folder.focus();
    });
    element.addEventListener("submit", async (event) => {
      event.preventDefault();
      submit.disabled = true;
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
        submit.disabled = false;
      }
    });
    return { button, element, open: () => open(true) };
  }

  async function one() {
    const skill = await ask("GET", `/skills/${encodeURIComponent(id)}`);
    if (!view.browses()) return;
    const text = skill.body || skill.description;
    const start = passage === undefined ? -1 : text.indexOf(passage);
    const end = start < 0 ? -1 : text.indexOf("\n\n", start + passage.length);
    const marks = start < 0 ? [] : [[start, end < 0 ? text.length : end]];
    const prose = h("article", { class: "sheet prose" }, markdown(text, { marks }));
    put(
      main,
      h("a", { class: "back", href: addressOf("skills") }, icon("back"), t("skills.title")),
      heading(skill.name, skill.description),
      h(
        "div",
        { class: "chips of-skills" },
        skill.tags.map((tag) => h("span", { class: "chip" }, tag)),
      ),
      prose,
      h("p", { class: "small muted" }, skill.path),
    );
    prose.querySelector("mark")?.scrollIntoView({ block: "center" });
  }

  return view;
}
