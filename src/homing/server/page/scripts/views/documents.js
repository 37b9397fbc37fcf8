// Documents: by project and folder, new ones, uploads; a document opens to be read and edited.

import { ask } from "../api.js";
import { h, put } from "../dom.js";
import { icon } from "../icons.js";
import { language, number, t } from "../language.js";
import { byName, everything, listing } from "../list.js";
import { failure } from "../messages.js";
import { command, empty, field, fileButton, heading, takesFiles } from "../parts.js";
import { addressOf, go } from "../route.js";
import { FILES, projectField, upload } from "../uploads.js";
import { editor } from "./editor.js";
import { sourceView } from "./source.js";

const FIRST = "notes";
const PAGE = 10_000;
const AT_ONCE = 4;
const READ = ".txt,.md,.markdown,.pdf,.docx,.xlsx,.epub";
const seen = new Set();
let latest = null;

export function documents(main, context) {
  const [project, name, chunk] = context.parts;
  let open = null;
  const view = sourceView(main, "documents", () => {
    if (project !== undefined && name !== undefined) {
      const known = chunk !== undefined || seen.has(`${project}/${name}`);
      open ??= editor(main, { project, name, chunk, known, changed: context.refreshCounts });
      return open.draw();
    }
    return list();
  });

  async function list() {
    const projects = (await ask("GET", "/documents")).projects.map((one) => one.id);
    const found = await allOf(projects);
    seen.clear();
    for (const one of found) seen.add(`${one.project}/${one.id}`);
    if (!view.browses()) return;
    const rows = listing({
      name: "documents",
      className: "of-documents",
      of: (one) => `${one.id} ${one.project}`,
      sorts: [
        ["name", (a, b) => byName(a.id, b.id)],
        ["updated", (a, b) => b.updated_at - a.updated_at || byName(a.id, b.id)],
        ["size", (a, b) => b.characters - a.characters || byName(a.id, b.id)],
      ],
      groups: [
        ["project", folderOf],
        ["kind", (one) => kindOf(one).toUpperCase()],
        ["none", undefined],
      ],
      row,
    });
    const form = newForm(projects);
    const take = async (files) => {
      const into = await upload(files, projects, latest ?? projects.find((one) => one !== FILES) ?? FILES);
      if (into === null) return;
      latest = into;
      context.refreshCounts();
      await view.again();
    };
    const page = h(
      "div",
      { class: "of-documents drop", dataset: { drop: t("documents.drop") } },
      heading(
        t("documents.title"),
        t("documents.text"),
        form.button,
        fileButton(t("documents.upload"), READ, (files) => take(files).catch(failure), { several: true }),
      ),
      h(
        "div",
        { class: "stack" },
        form.element,
        found.length > 0
          ? rows.element
          : empty(
              "documents",
              t("documents.empty"),
              t("documents.empty.text"),
              command("homing documents add notes chapter-1 chapter-1.md"),
            ),
      ),
    );
    takesFiles(page, (files) => take(files).catch(failure));
    put(main, page);
    if (found.length > 0) rows.show(found);
  }

  /** {button, element}: the button stands beside the title and shows the form below it. */
  function newForm(projects) {
    const texts = projects.filter((one) => one !== FILES);
    const where = projectField(texts, latest !== FILES && latest !== null ? latest : (texts[0] ?? FIRST));
    const called = h("input", { required: true, maxlength: "200" });
    const element = h(
      "form",
      { class: "sheet", "aria-label": t("documents.new"), id: "new-document", hidden: true },
      h(
        "div",
        { class: "row" },
        where.element,
        field(t("documents.name"), called),
        h("button", { class: "main" }, t("documents.write")),
      ),
    );
    const button = h(
      "button",
      { type: "button", "aria-controls": "new-document", "aria-expanded": "false" },
      icon("plus"),
      t("documents.new"),
    );
    button.addEventListener("click", () => {
      element.hidden = !element.hidden;
      button.setAttribute("aria-expanded", String(!element.hidden));
      called.focus();
    });
    element.addEventListener("submit", (event) => {
      event.preventDefault();
      if (where.value() && called.value.trim()) go("documents", [where.value(), called.value.trim()]);
    });
    return { button, element };
  }

  return {
    ...view,
    leave: () => {
      view.leave();
      open?.leave();
    },
    hear: view.hear,
  };
}

/** The documents of every project, a few projects at a time. */
async function allOf(projects) {
  const found = new Map();
  const waiting = [...projects];
  const work = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      const address = `/documents/${encodeURIComponent(id)}?limit=${PAGE}`;
      found.set(
        id,
        await everything(async (offset) => (await ask("GET", `${address}&offset=${offset}`)).documents, PAGE),
      );
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return projects.flatMap((id) => found.get(id));
}

/** The project, and the folders in the name where it has some. */
function folderOf(one) {
  const at = one.id.lastIndexOf("/");
  const project = one.project === FILES ? t("upload.files") : one.project;
  return at < 0 ? project : `${project} / ${one.id.slice(0, at).replaceAll("/", " / ")}`;
}

function kindOf(one) {
  return one.project === FILES ? (/\.([^.]{1,8})$/.exec(one.id)?.[1].toLowerCase() ?? "") : t("documents.text-kind");
}

function row(one) {
  const when = new Date(one.updated_at * 1000);
  return h(
    "a",
    { href: addressOf("documents", [one.project, one.id]), dataset: { stop: `${one.project}/${one.id}` } },
    h("strong", {}, one.id.slice(one.id.lastIndexOf("/") + 1)),
    h(
      "span",
      { class: "about" },
      `${t("documents.chunks", { n: number(one.chunks) })} · ${t("documents.characters", { n: number(one.characters) })}`,
    ),
    h(
      "span",
      { class: "chips" },
      one.pending > 0 && h("span", { class: "chip" }, t("documents.pending", { n: one.pending })),
      one.project === FILES && h("span", { class: "chip plain" }, kindOf(one)),
      h(
        "time",
        { class: "small muted", datetime: when.toISOString() },
        when.toLocaleDateString(language() === "zh" ? "zh-CN" : "en", { dateStyle: "medium" }),
      ),
    ),
  );
}
