// The example data that comes with Homing, put in on request.

import { ApiError, ask, pageFile } from "./api.js";
import { follow, hasFailed } from "./jobs.js";

/** Skills, documents, memories and, where there is none, a home; `progress` gets each state of the job. */
export async function putInExamples(progress) {
  const job = await follow(await ask("POST", "/examples"), progress);
  if (hasFailed(job)) throw new ApiError(500, job.error.code, job.error.message);
}

export async function putInHome() {
  await ask("PUT", "/devices", JSON.parse(await pageFile("examples/home.json")));
}
