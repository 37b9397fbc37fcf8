// A job as a bar with a sentence.

import { h, put } from "./dom.js";
import { isOver } from "./jobs.js";
import { named, number, percent } from "./language.js";

/** {element, show(job)}. */
export function progressBar() {
  const fill = h("i");
  const bar = h(
    "div",
    { class: "bar unknown", role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100" },
    fill,
  );
  const words = h("p", { class: "small muted" });
  const element = h("div", { class: "job" }, bar, words);
  return {
    element,
    show(job) {
      const known = job.total > 0;
      const share = known ? Math.min(1, job.done / job.total) : 0;
      bar.classList.toggle("unknown", !known && !isOver(job));
      fill.style.width = job.state === "done" ? "100%" : known ? `${share * 100}%` : "";
      bar.setAttribute("aria-valuenow", String(Math.round(share * 100)));
      const error = job.error ? ` · ${job.error.message}` : "";
      put(
        words,
        `${named("job", job.state)}${known ? ` · ${number(job.done)} / ${number(job.total)} (${percent(share)})` : ""}${error}`,
      );
    },
  };
}
