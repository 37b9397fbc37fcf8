// Files that are brought in: asked where to, seen on their way, and told how each of them ended.

import { ask, sendFile } from "./api.js";
import { h, put } from "./dom.js";
import { icon } from "./icons.js";
import { follow, hasFailed } from "./jobs.js";
import { number, t, told } from "./language.js";
import { say } from "./messages.js";
import { field } from "./parts.js";
import { addressOf } from "./route.js";

/** The project of files that keep their format and pages. */
export const FILES = "uploads";

/** A field for a project: one of those there are, or a new name; uploads have one of their own. {element, select, value()} */
export function projectField(projects, chosen) {
  const select = h(
    "select",
    {},
    [...new Set([chosen, ...projects])].map((id) => h("option", { value: id }, id === FILES ? t("upload.files") : id)),
    h("option", { value: "" }, t("upload.new")),
  );
  select.value = chosen;
  const name = h("input", { maxlength: "200", "aria-label": t("upload.new.name"), placeholder: t("upload.new.name") });
  const element = h("div", { class: "stack where" }, field(t("documents.project"), select), name);
  const show = () => {
    name.hidden = select.value !== "";
    name.required = select.value === "";
    if (!name.hidden) name.focus();
  };
  select.addEventListener("change", show);
  show();
  return { element, select, value: () => select.value || name.value.trim() };
}

/** Asks where the files go, and brings them there; resolves with the project once the dialog is closed, or with null. */
export function upload(files, projects, chosen) {
  const where = projectField([...projects, FILES], chosen);
  const rows = files.map(fileRow);
  const taken = h("p", { class: "small warned", role: "status" });
  const start = h("button", { class: "main" }, t("upload.start", { n: files.length }));
  const cancel = h("button", { type: "button" }, t("cancel"));
  const verdict = h("p", { role: "status" });
  const form = h(
    "form",
    { class: "stack of-documents" },
    h("h2", {}, t("documents.upload")),
    where.element,
    h(
      "ul",
      { class: "files" },
      rows.map((row) => row.element),
    ),
    taken,
    verdict,
    h("div", { class: "row buttons" }, cancel, start),
  );
  const dialog = h("dialog", { id: "upload", "aria-label": t("documents.upload") }, form);
  let into = null;
  const names = async (project) =>
    projects.includes(project) ? (await ask("GET", `/documents/${encodeURIComponent(project)}`)).documents : [];

  /** A file that was uploaded before is replaced by a newer one: whoever does that is told so before. */
  async function warn() {
    const project = where.value();
    const known = project === FILES ? new Set((await names(project)).map((one) => one.id)) : new Set();
    const same = files.filter((file) => known.has(file.name)).map((file) => file.name);
    put(taken, same.length > 0 && project === where.value() ? t("upload.replaces", { names: same.join("、") }) : "");
  }

  async function bring() {
    into = where.value();
    where.select.disabled = true;
    start.hidden = cancel.hidden = true;
    put(taken);
    let failed = 0;
    for (const row of rows) failed += (await row.bring(into, names)) ? 0 : 1;
    const done = t(failed > 0 ? "upload.some" : "upload.done", { n: files.length - failed, failed });
    put(verdict, icon(failed > 0 ? "warn" : "check"), done);
    verdict.className = failed > 0 ? "verdict" : "verdict ok";
    say(done);
    put(cancel, t("close"));
    cancel.hidden = false;
    cancel.focus();
  }

  document.body.append(dialog);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    bring();
  });
  where.select.addEventListener("change", () => warn().catch(() => {}));
  warn().catch(() => {});
  cancel.addEventListener("click", () => dialog.close());
  // While files are on their way the dialog stays: it is where they end.
  dialog.addEventListener("cancel", (event) => cancel.hidden && event.preventDefault());
  dialog.showModal();
  start.focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(into);
    });
  });
}

/** {element, bring(project)}: one file with its bar; `bring` resolves with whether it is there now. */
function fileRow(file) {
  const fill = h("i");
  const bar = h(
    "div",
    {
      class: "bar",
      role: "progressbar",
      "aria-valuemin": "0",
      "aria-valuemax": "100",
      "aria-label": file.name,
      hidden: true,
    },
    fill,
  );
  const state = h("span", { class: "small muted" }, t("upload.size", { n: number(Math.ceil(file.size / 1024)) }));
  const element = h("li", {}, h("strong", {}, file.name), state, bar);
  const show = (share, words) => {
    fill.style.width = `${share * 100}%`;
    bar.setAttribute("aria-valuenow", String(Math.round(share * 100)));
    put(state, words);
  };
  /** The way to the server is half of it, what the server does with it the other. */
  const sent = (share) => show(share / 2, t(share < 1 ? "upload.sending" : "upload.reading"));
  const worked = (job) => job.total > 0 && show(0.5 + job.done / job.total / 2, t("upload.reading"));

  async function bring(project, names) {
    bar.hidden = false;
    show(0, t("upload.sending"));
    try {
      const [name, notes] =
        project === FILES ? await asFile(file, sent, worked) : await asText(file, project, sent, names);
      show(1, [t("upload.there"), ...notes].join(" · "));
      element.append(
        h(
          "a",
          { class: "small", href: addressOf("documents", [project, name]), on: { click: closeDialog } },
          t("why.open"),
        ),
      );
      element.classList.add("done");
      return true;
    } catch (error) {
      bar.hidden = true;
      const words =
        error.code === "NETWORK" ? t("error.network") : told(error.notice) || error.message || t("error.plain");
      put(state, words, " ", error.code && h("code", {}, error.code));
      element.classList.add("failed");
      return false;
    }
  }
  return { element, bring };
}

function closeDialog() {
  document.getElementById("upload")?.close();
}

async function asFile(file, sent, worked) {
  let answer = await sendFile("/knowledge/upload", file, sent);
  if (answer.state !== undefined) {
    const job = await follow(answer, worked);
    if (hasFailed(job)) throw Object.assign(new Error(job.error.message), job.error);
    answer = job.result ?? (await ask("GET", `/jobs/${encodeURIComponent(job.id)}`)).result;
  }
  return [answer.file.file_name, answer.notes];
}

async function asText(file, project, sent, names) {
  const { text, notes } = await sendFile("/files/text", file, sent);
  const name = await freeName(project, file.name, text, new Set((await names(project)).map((one) => one.id)));
  await ask("PUT", `/documents/${encodeURIComponent(project)}/${encodeURIComponent(name)}`, { text });
  return [name, notes];
}

/** What a file is called here: nothing that somebody wrote under that name is replaced by it, only the same text. */
async function freeName(project, file, text, taken) {
  const stem = file.replace(/\.[^.]+$/, "");
  for (let attempt = 0; ; attempt += 1) {
    const called = attempt === 0 ? stem : attempt === 1 ? file : `${stem} (${attempt})`;
    if (!taken.has(called)) return called;
    const there = await ask("GET", `/documents/${encodeURIComponent(project)}/${encodeURIComponent(called)}`);
    if (there.text === text) return called;
  }
}
