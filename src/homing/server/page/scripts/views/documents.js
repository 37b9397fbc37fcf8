// Documents: by project, new ones, uploads; a document opens in the editor.

import { ask, textOf } from "../api.js";
import { h, put } from "../dom.js";
import { number, t } from "../language.js";
import { failure, toast } from "../messages.js";
import { command, empty, field, fileButton, heading, takesFiles } from "../parts.js";
import { addressOf, go } from "../route.js";
import { editor } from "./editor.js";
import { sourceView } from "./source.js";

const FIRST = "notes";
const LARGE = 1_000_000;

export function documents(main, context) {
  const [project, name, chunk] = context.parts;
  let open = null;
  const view = sourceView(main, "documents", () => {
    if (project !== undefined && name !== undefined) {
      open ??= editor(main, { project, name, chunk, changed: context.refreshCounts });
      return open.draw();
    }
    return list();
  });

  async function list() {
    const { projects } = await ask("GET", "/documents");
    const each = await Promise.all(projects.map((one) => ask("GET", `/documents/${encodeURIComponent(one.id)}`)));
    const upload = (files) => takeFiles(files, projects[0]?.id ?? FIRST);
    const page = h(
      "div",
      { class: "stack of-documents drop", dataset: { drop: t("documents.drop") } },
      heading(
        t("documents.title"),
        t("documents.text"),
        fileButton(t("documents.upload"), ".txt,.md,.markdown,.pdf,.docx,.xlsx,.epub", upload, { several: true }),
      ),
      projects.length === 0 &&
        empty(
          "documents",
          t("documents.empty"),
          t("documents.empty.text"),
          command("homing docs add notes chapter-1 chapter-1.md"),
        ),
      projects.map((one, at) => shelf(one.id, each[at].documents)),
      newForm(projects.map((one) => one.id)),
    );
    takesFiles(page, upload);
    put(main, page);
  }

  function shelf(id, found) {
    return h(
      "section",
      {},
      h("h2", {}, id),
      h(
        "ul",
        { class: "cards" },
        found.map((one) => spine(id, one)),
      ),
    );
  }

  function spine(id, one) {
    return h(
      "li",
      {},
      h(
        "a",
        { href: addressOf("documents", [id, one.id]), dataset: { stop: `${id}/${one.id}` } },
        h("strong", {}, one.id),
        h(
          "span",
          { class: "muted small" },
          `${t("documents.chunks", { n: number(one.chunks) })} · ${t("documents.characters", { n: number(one.characters) })}`,
        ),
        one.pending > 0 && h("span", { class: "chip" }, t("documents.pending", { n: one.pending })),
      ),
    );
  }

  function newForm(known) {
    const list = h(
      "datalist",
      { id: "projects" },
      known.map((id) => h("option", { value: id })),
    );
    const where = h("input", { list: "projects", required: true, value: known[0] ?? FIRST, maxlength: "200" });
    const called = h("input", { required: true, maxlength: "200" });
    const form = h(
      "form",
      { class: "sheet", "aria-label": t("documents.new") },
      list,
      h(
        "div",
        { class: "row" },
        field(t("documents.project"), where),
        field(t("documents.name"), called),
        h("button", { class: "main" }, t("documents.new")),
      ),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (where.value.trim() && called.value.trim()) go("documents", [where.value.trim(), called.value.trim()]);
    });
    return form;
  }

  async function takeFiles(files, into) {
    for (const file of files) {
      try {
        if (file.size > LARGE) toast(t("documents.reading", { name: file.name }));
        const { text, notes } = await textOf(file);
        const called = await freeName(into, file.name, text);
        await ask("PUT", `/documents/${encodeURIComponent(into)}/${encodeURIComponent(called)}`, { text });
        toast([t("documents.added", { name: called }), ...notes].join(" · "));
      } catch (error) {
        failure(error);
      }
    }
    context.refreshCounts();
    await view.again();
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

/** What a file is called here: nothing that somebody wrote under that name is replaced by it, only the same text. */
async function freeName(project, file, text) {
  const { projects } = await ask("GET", "/documents");
  const stem = file.replace(/\.[^.]+$/, "");
  if (projects.every((one) => one.id !== project)) return stem;
  const at = `/documents/${encodeURIComponent(project)}`;
  const taken = new Set((await ask("GET", at)).documents.map((one) => one.id));
  for (let number = 0; ; number += 1) {
    const called = number === 0 ? stem : number === 1 ? file : `${stem} (${number})`;
    if (!taken.has(called)) return called;
    if ((await ask("GET", `${at}/${encodeURIComponent(called)}`)).text === text) return called;
  }
}
