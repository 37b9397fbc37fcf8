// What the doctor found, and what the server is doing.

import { activity } from "../activity.js";
import { ask } from "../api.js";
import { h, put } from "../dom.js";
import { icon } from "../icons.js";
import { named, t, told } from "../language.js";
import { failure } from "../messages.js";
import { command, heading } from "../parts.js";

const SIGNS = { ok: "check", warn: "warn", fail: "cross", skip: "skip" };
const ORDER = ["fail", "warn", "ok", "skip"];

export function health(main) {
  const doing = activity();
  let asked = false;

  async function check() {
    const again = h("button", { type: "button", disabled: true }, t("health.running"));
    again.addEventListener("click", () => check().catch(failure));
    const list = h("ul", { class: "findings" });
    const findings = [];
    const draw = (waiting) => {
      findings.sort((one, other) => ORDER.indexOf(one.status) - ORDER.indexOf(other.status));
      put(list, [...Array.from({ length: waiting }, () => h("li", { class: "waiting" })), ...findings.map(finding)]);
    };
    draw(5);
    put(main, heading(t("health.title"), t("health.text"), again), doing.element, list);
    try {
      // What reads everything that is kept comes last: the rest is seen while it runs.
      findings.push(...(await ask("GET", "/doctor?part=quick")).findings);
      draw(2);
      findings.push(...(await ask("GET", "/doctor?part=data")).findings);
      draw(0);
      const count = (status) => findings.filter((one) => one.status === status).length;
      const bad = count("fail") + count("warn");
      const summary = bad === 0 ? t("health.all-ok") : t("health.some", { fail: count("fail"), warn: count("warn") });
      doing.element.before(
        h(
          "p",
          { class: bad === 0 ? "verdict ok" : "verdict", role: "status" },
          icon(bad === 0 ? "check" : "warn"),
          summary,
        ),
      );
    } catch (error) {
      if (findings.length > 0) draw(0);
      else list.remove();
      throw error;
    } finally {
      again.disabled = false;
      put(again, t("again"));
    }
  }

  return {
    async hear() {
      if (!asked) {
        asked = true;
        await Promise.all([check(), doing.start()]);
      }
    },
    leave: doing.stop,
  };
}

function finding(one) {
  const mend = one.mend ?? "";
  return h(
    "li",
    { class: `finding ${one.status}` },
    icon(SIGNS[one.status] ?? "skip"),
    h(
      "div",
      {},
      h("strong", {}, called(one.check)),
      h("span", { class: "unseen" }, ` ${named("status", one.status)} `),
      h("p", { class: "muted" }, told({ zh: one.detail_zh || one.detail, en: one.detail })),
      mend &&
        (mend.startsWith("homing ") || mend.startsWith("pip ") ? command(mend) : h("p", { class: "small" }, mend)),
    ),
  );
}

/** What a check is called: its first word in the language of the page, and what it is about as the server names it. */
function called(check) {
  const [kind, ...about] = check.split(" ");
  if (check === "index sizes") return named("check", "sizes");
  if (check === "file modes") return named("check", "file");
  return [named("check", kind), about.length > 0 && named("about", about.join(" "))].filter(Boolean).join(" · ");
}
