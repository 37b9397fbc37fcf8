// Long work on the server, followed as it goes.

import { ask, events } from "./api.js";

const OVER = new Set(["done", "failed", "cancelled"]);

/** Follows a job to its end; `progress` gets each state. Resolves with the last one. */
export async function follow(job, progress) {
  let last = job;
  progress(last);
  try {
    for await (const { data } of events(`/jobs/${encodeURIComponent(job.id)}/events`)) {
      last = { ...last, ...data };
      progress(last);
      if (isOver(last)) return last;
    }
  } catch (error) {
    if (error.status >= 400) throw error;
    // The stream broke off; the job goes on, so it is asked for.
  }
  while (!isOver(last)) {
    await new Promise((resolve) => setTimeout(resolve, 700));
    last = await ask("GET", `/jobs/${encodeURIComponent(job.id)}`);
    progress(last);
  }
  return last;
}

export function isOver(job) {
  return OVER.has(job.state);
}

export function hasFailed(job) {
  return job.state === "failed";
}
