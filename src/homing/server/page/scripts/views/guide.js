// The guide that comes with the package, and the HTTP API as the server describes it.

import { ask, pageFile } from "../api.js";
import { h, put } from "../dom.js";
import { t } from "../language.js";
import { markdown } from "../markdown.js";
import { command, heading } from "../parts.js";
import { addressOf } from "../route.js";

const INDEX = "README";
const API = "api";

export function guide(main, { parts }) {
  const [name = INDEX] = parts;
  let asked = false;

  async function draw() {
    const drawn = name === API ? await api() : await page(name);
    put(main, h("div", { class: "stack guide" }, name !== INDEX && home(), drawn));
  }

  return {
    async hear() {
      if (asked) return;
      asked = true;
      await draw();
    },
  };
}

function home() {
  return h("p", {}, h("a", { href: addressOf("guide") }, `‹ ${t("tab.guide")}`));
}

async function page(name) {
  const text = await pageFile(`guide/${encodeURIComponent(name)}.md`);
  const drawn = h("article", { class: "prose sheet" }, markdown(text, { level: 1, local }));
  if (name !== INDEX) return drawn;
  const links = h("p", {}, h("a", { href: addressOf("guide", [API]) }, t("guide.api")), " · ", t("guide.shell"));
  return [links, drawn];
}

/** Pages of the guide open here, its pictures are shown; what lies outside of it is only named. */
function local(address, label, isPicture) {
  if (/^[a-z]+:/i.test(address)) return null;
  if (isPicture) return h("img", { src: `/page/guide/${address}`, alt: label });
  const found = /^([\w-]+)\.md(?:#.*)?$/.exec(address);
  return found === null ? h("span", {}, label) : h("a", { href: addressOf("guide", [found[1]]) }, label);
}

async function api() {
  const described = await ask("GET", "/openapi.json");
  const groups = new Map();
  for (const [path, methods] of Object.entries(described.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const [tag = "other"] = operation.tags ?? [];
      groups.set(tag, [...(groups.get(tag) ?? []), { method: method.toUpperCase(), path, ...operation }]);
    }
  }
  const schemas = described.components?.schemas ?? {};
  return [
    heading(t("guide.api"), t("guide.api.text")),
    h("p", {}, h("a", { href: "/openapi.json" }, "openapi.json")),
    [...groups].map(([tag, operations]) =>
      h(
        "section",
        { class: "sheet" },
        h("h2", {}, tag),
        operations.map((one) => drawOperation(one, schemas)),
      ),
    ),
  ];
}

function drawOperation(operation, schemas) {
  const inside = h("div", { class: "stack" });
  const made = h(
    "details",
    { class: "operation" },
    h("summary", {}, h("code", {}, `${operation.method} ${operation.path}`), h("span", {}, operation.summary)),
    inside,
  );
  // Drawn when somebody looks: there are many.
  made.addEventListener("toggle", () => put(inside, described(operation, schemas)), { once: true });
  return made;
}

function described(operation, schemas) {
  const body = contentOf(operation.requestBody);
  const answer = contentOf(Object.entries(operation.responses).find(([status]) => status.startsWith("2"))?.[1]);
  const failures = Object.keys(operation.responses).filter((status) => Number(status) >= 400);
  const parameters = (operation.parameters ?? []).map((one) => ({
    ...one.schema,
    name: one.name,
    required: one.required,
    description: one.description,
  }));
  return [
    operation.description && h("div", { class: "prose" }, markdown(operation.description, { level: 3 })),
    command(exampleOf(operation, body, schemas)),
    parameters.length > 0 && [h("h3", {}, t("guide.parameters")), fieldTable(parameters, t("guide.parameters"))],
    body && [h("h3", {}, t("guide.body")), typeTables(body, schemas, t("guide.body"))],
    answer && [h("h3", {}, t("guide.answer")), typeTables(answer, schemas, t("guide.answer"))],
    failures.length > 0 && h("p", { class: "muted small" }, t("guide.failures", { codes: failures.join(", ") })),
  ];
}

/** The type itself, and each type that it is made of once. */
function typeTables(schema, schemas, label) {
  const seen = new Map();
  const collect = (one) => {
    const name = refOf(one);
    if (name !== null) {
      if (seen.has(name)) return;
      seen.set(name, fieldsOf(schemas[name]));
      collect(schemas[name]);
    }
    for (const part of [...Object.values(one?.properties ?? {}), one?.items, one?.additionalProperties, ...unionOf(one)])
      if (part && typeof part === "object") collect(part);
  };
  collect(schema);
  const own = fieldsOf(schema);
  if (own.length > 0) seen.set("", own);
  if (seen.size === 0) return h("p", {}, h("code", {}, typeOf(schema)));
  return [...seen].map(([name, fields]) => [
    name && h("h4", {}, h("code", {}, name)),
    fields.length > 0 && fieldTable(fields, name || label),
  ]);
}

function fieldTable(fields, label) {
  const head = [t("guide.name"), t("guide.type"), t("guide.about")].map((one) => h("th", {}, one));
  const rows = fields.map((one) =>
    h(
      "tr",
      {},
      h("td", {}, h("code", {}, one.name), one.required && h("span", { class: "small muted" }, ` ${t("guide.required")}`)),
      h("td", {}, h("code", {}, typeOf(one))),
      h("td", {}, one.description, one.default !== undefined && one.default !== null && ` (${JSON.stringify(one.default)})`),
    ),
  );
  const table = h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows));
  return h("div", { class: "scrolls", tabindex: "0", role: "group", "aria-label": label }, table);
}

function fieldsOf(schema) {
  const required = new Set(schema?.required ?? []);
  return Object.entries(schema?.properties ?? {}).map(([name, one]) => ({
    ...one,
    name,
    required: required.has(name),
  }));
}

function contentOf(part) {
  const [kind] = Object.values(part?.content ?? {});
  return kind?.schema ?? null;
}

function unionOf(schema) {
  return schema?.anyOf ?? schema?.oneOf ?? schema?.allOf ?? [];
}

function refOf(schema) {
  return schema?.$ref?.split("/").pop() ?? null;
}

function typeOf(schema) {
  if (schema === undefined || schema === null || schema === true) return "any";
  if (schema.$ref) return refOf(schema);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (unionOf(schema).length > 0) return [...new Set(unionOf(schema).map(typeOf))].join(" | ");
  if (schema.type === "array") return schema.items ? `${typeOf(schema.items)}[]` : "any[]";
  if (schema.type === "object" && schema.additionalProperties) return `{ [key]: ${typeOf(schema.additionalProperties)} }`;
  return schema.type ?? "any";
}

/** A command that works after its dots are filled in: what must be given, with the examples of the description. */
function exampleOf(operation, body, schemas) {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name) => name.toUpperCase());
  const method = operation.method === "GET" ? "" : ` -X ${operation.method}`;
  if (body === null) return `curl${method} ${location.origin}${path}`;
  const schema = schemas[refOf(body)] ?? body;
  const given = fieldsOf(schema).filter((one) => one.required);
  if ("multipart/form-data" in operation.requestBody.content) return `curl${method} ${location.origin}${path} -F file=@FILE`;
  const sample = Object.fromEntries(given.map((one) => [one.name, one.examples?.[0] ?? valueOf(one)]));
  const quoted = JSON.stringify(sample).replaceAll("'", "'\\''");
  return `curl${method} ${location.origin}${path} -H 'content-type: application/json' -d '${quoted}'`;
}

function valueOf(schema) {
  if (schema.type === "integer" || schema.type === "number") return 1;
  if (schema.type === "boolean") return true;
  if (schema.type === "array") return [];
  if (schema.type === "object" || schema.$ref) return {};
  return "…";
}
