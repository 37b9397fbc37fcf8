// The example data that comes with Homing, put in on request, with a home in the language of the page.

import { ApiError, ask, pageFile } from "./api.js";
import { follow, hasFailed } from "./jobs.js";
import { language } from "./language.js";

/** Skills, documents, memories and, where there is none, a home; `progress` gets each state of the job. */
export async function putInExamples(progress) {
  const { devices } = await ask("GET", "/devices");
  // The server's own example is the Chinese home, and it replaces none.
  if (devices.length === 0 && language() === "en") await putInHome();
  const job = await follow(await ask("POST", "/examples"), progress);
  if (hasFailed(job)) throw new ApiError(500, job.error.code, job.error.message);
}

export async function putInHome() {
  const file = language() === "zh" ? "examples/home.json" : "examples/home.en.json";
  await ask("PUT", "/devices", JSON.parse(await pageFile(file)));
}
