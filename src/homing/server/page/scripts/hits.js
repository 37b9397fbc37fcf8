// What a hit is called, where it lives, and what about it is shown, by the source it comes from.

import { named, t } from "./language.js";
import { addressOf } from "./route.js";

const BEGINNING = 60;

/** {title, place, text, open}: `open` is the address of the thing itself, where the page has a view of it. */
export function described(source, hit) {
  const known = hit.metadata ?? {};
  const text = hit.text ?? hit.snippet ?? "";
  if (source === "skills") {
    return {
      title: hit.name ?? hit.title ?? known.name ?? hit.id,
      place: (known.tags ?? hit.tags ?? []).join(" · "),
      text: hit.description ?? known.description ?? text,
      open: addressOf("skills", [hit.id, ...passageOf(known.why)]),
    };
  }
  if (source === "documents") {
    const project = known.project ?? known.project_id ?? hit.project ?? "";
    const document = known.document ?? known.document_id ?? hit.document_id ?? "";
    return {
      title: document || hit.id,
      place: [project, known.part && pageOf(known.part)].filter(Boolean).join(" · "),
      text,
      open: project && document ? addressOf("documents", [project, document, hit.id]) : null,
    };
  }
  if (source === "memory") {
    const kind = hit.collection ?? known.collection ?? "";
    return { title: named("kind", kind), place: known.session_key ?? "", text, open: null };
  }
  return {
    title: hit.name ?? known.name ?? text ?? hit.id,
    place: known.room ?? hit.room ?? "",
    text: commanded(hit),
    open: addressOf("devices"),
  };
}

/** What a part of a file is called: a page by its number, a chapter or a sheet by its name. */
export function pageOf(part) {
  return /^\d+$/.test(part) ? t("documents.page", { n: part }) : part;
}

/** How the stretch of a skill's text begins that was found, to open the skill there. */
function passageOf(why) {
  const found = (Array.isArray(why) ? why : []).find((one) => one.part === "body" && one.text);
  return found === undefined ? [] : [found.text.trim().split("\n")[0].slice(0, BEGINNING)];
}

/** What a device would be told, and why it is meant, in the words of the interface. */
function commanded(hit) {
  const { command, value, change } = hit.metadata ?? {};
  const told = [command, value ?? change].filter((part) => part !== null && part !== undefined).join(" ");
  return [told, ...(hit.reasons ?? []).map((reason) => named("reason", reason))].filter(Boolean).join(" · ");
}
