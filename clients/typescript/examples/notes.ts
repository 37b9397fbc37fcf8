/**
 * Searches a folder of notes: `node notes.ts http://127.0.0.1:8765 ~/notes "孤独的感觉"`.
 * Every .md and .txt file becomes a document of one project; only what changed is sent to the model again.
 */
import { readFile, readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { HomingError, HomingHttp } from "homing-client/http";

const [url, folder, query] = process.argv.slice(2);
if (url === undefined || folder === undefined || query === undefined) {
  console.error('usage: node notes.ts URL FOLDER "QUERY"');
  process.exit(2);
}

const homing = new HomingHttp(url, process.env.HOMING_TOKEN ? { token: process.env.HOMING_TOKEN } : {});
const projectId = `notes ${resolve(folder)}`;
try {
  for (const name of await readdir(folder)) {
    if (!/\.(md|txt)$/.test(name)) continue;
    await homing.invoke("document:save", { projectId, documentId: name, text: await readFile(join(folder, name), "utf8") });
  }
  await homing.invoke("embedding:status", { waitMs: 10_000 });
  const { results, fallback } = await homing.invoke("embedding:search", { projectId, query, mode: "hybrid", minScore: 0 });
  if (fallback) console.error(fallback.notice);
  for (const hit of results) console.log(`${(hit.score ?? 0).toFixed(2)}  ${hit.documentId}  ${hit.text}`);
} catch (error) {
  if (!(error instanceof HomingError)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
}
