// Models: which there are, which answers, and changing it while everything goes on.

import { ask } from "../api.js";
import { h, put } from "../dom.js";
import { follow, hasFailed, isOver } from "../jobs.js";
import { named, number, t } from "../language.js";
import { failure, toast } from "../messages.js";
import { command, heading } from "../parts.js";
import { progressBar } from "../progress.js";

const LOOK = 800;

export function models(main) {
  let looking = null;
  let drawn = false;
  let left = false;
  const state = h("div", { class: "stack" });
  const list = h("ul", { class: "models" });

  async function draw() {
    put(main, heading(t("models.title"), t("models.text")), h("div", { class: "stack" }, list, state));
    await Promise.all([drawList(), drawSwitch()]);
  }

  async function drawList() {
    const { models: found, fixed } = await ask("GET", "/models");
    put(
      list,
      fixed && h("li", { class: "teach muted" }, t("models.explicit")),
      found.map((model) => row(model, fixed)),
      found.length < 2 &&
        h(
          "li",
          { class: "teach" },
          h("p", { class: "muted" }, t("models.one")),
          command("homing providers add openai --type openai"),
          command("homing models add text-embedding-3-small --provider openai"),
        ),
    );
  }

  function row(model, fixed) {
    const use = h("button", { type: "button", disabled: fixed }, t("models.use"));
    use.addEventListener("click", () => change(model, use));
    return h(
      "li",
      { class: model.default ? "used" : "" },
      h(
        "div",
        {},
        h("strong", {}, model.name),
        h(
          "span",
          { class: "muted small" },
          [
            model.provider === "local" ? t("models.local") : model.provider,
            model.dimensions && t("models.dimensions", { n: model.dimensions }),
          ]
            .filter(Boolean)
            .join(" · "),
        ),
      ),
      model.default
        ? h("span", { class: "chip" }, t("models.used"))
        : model.enabled
          ? use
          : h("span", { class: "chip plain" }, t("models.off")),
    );
  }

  async function change(model, button) {
    button.disabled = true;
    const bar = progressBar();
    const job = h(
      "section",
      { class: "sheet", id: "switching" },
      h("h2", {}, t("models.switching", { model: model.name })),
      bar.element,
    );
    state.prepend(job);
    try {
      const watching = setInterval(() => drawSwitch().catch(() => {}), LOOK);
      const started = await ask("POST", "/models/default", { name: model.name, provider: model.provider });
      drawList().catch(() => {});
      const last = await follow(started, bar.show).finally(() => clearInterval(watching));
      if (hasFailed(last)) return;
      job.remove();
      toast(t("models.switched", { model: model.name }));
    } catch (error) {
      job.remove();
      failure(error);
    } finally {
      button.disabled = false;
      if (!left) await Promise.all([drawList(), drawSwitch()]);
    }
  }

  /** Who answers for what, and how far the vectors of another model have come. */
  async function drawSwitch() {
    const status = await ask("GET", "/models/switch");
    if (left) return;
    const kept = state.querySelector("#switching");
    put(
      state,
      kept,
      status.collections.length > 0 &&
        h(
          "section",
          { class: "sheet" },
          h("h2", {}, t("models.collections")),
          h("div", { class: "scrolls" }, h("ul", { class: "spaces" }, status.collections.map(collection))),
        ),
    );
    clearTimeout(looking);
    if (!status.finished && kept === null) looking = setTimeout(() => drawSwitch().catch(failure), LOOK * 2);
  }

  function collection(one) {
    return h(
      "li",
      {},
      h("strong", {}, named("about", one.collection)),
      h("span", { class: "muted small" }, number(one.records)),
      h(
        "div",
        {},
        one.models.map((held) => bar(held, one.records)),
      ),
    );
  }

  function bar(held, records) {
    const share = records > 0 ? Math.min(1, held.embedded / records) : 0;
    const line = h("div", { class: "bar", "aria-hidden": "true" }, h("i"));
    line.firstChild.style.width = `${share * 100}%`;
    const word = held.served ? "models.answers" : share < 1 ? "models.filling" : "models.kept";
    return h(
      "div",
      { class: held.served ? "space active" : "space" },
      h("span", { class: "small" }, held.model),
      h(
        "span",
        { class: "small muted" },
        `${t(word)} · ${number(Math.min(held.embedded, records))} / ${number(records)}`,
      ),
      line,
    );
  }

  /** A change that was begun before the page was opened. */
  async function resume() {
    const jobs = (await ask("GET", "/jobs")).jobs;
    const running = jobs.find((job) => job.kind === "switch" && !isOver(job));
    if (running === undefined || left) return;
    const bar = progressBar();
    state.prepend(h("section", { class: "sheet", id: "switching" }, bar.element));
    await follow(running, bar.show);
    state.querySelector("#switching")?.remove();
    if (!left) await Promise.all([drawList(), drawSwitch()]);
  }

  return {
    async hear() {
      if (drawn) return;
      drawn = true;
      await draw();
      resume().catch(() => {});
    },
    leave() {
      left = true;
      clearTimeout(looking);
    },
  };
}
