// The example data that comes with Homing, put in on request.

import { ask, pageFile } from "./api.js";

const PROJECT = "examples";
const LIBRARY = ["灯塔.md", "旅行清单.md", "家常菜.md", "deployment.md", "git-notes.md", "sleep.md"];
const MEMORIES = [
  ["knowledge", "Billing: we decided to charge per seat, monthly, and to keep the free plan."],
  ["knowledge", "发布前先在预览环境跑一遍回归测试，再合并到主分支。"],
  ["observation", "用户不吃辣，对花生过敏，喜欢靠窗的位置。"],
  ["observation", "The user prefers short answers and dark mode."],
  ["reflection", "上周的会议太长：以后先发议程，再开会。"],
  ["learning", "When the build fails on CI only, compare the Python versions first."],
];

/** Documents, memories and a home; each keeps what is there and adds to it, but the home, which replaces an empty one. */
export async function putInExamples() {
  for (const name of LIBRARY) {
    const text = await pageFile(`examples/library/${encodeURIComponent(name)}`);
    await ask("PUT", `/documents/${PROJECT}/${encodeURIComponent(name.replace(/\.md$/, ""))}`, { text });
  }
  const remembered = await ask("GET", "/rag?limit=1");
  if (Object.values(remembered.counts).every((count) => count === 0)) {
    for (const [collection, text] of MEMORIES) await ask("POST", "/rag/remember", { collection, text });
  }
  const home = await ask("GET", "/devices");
  if (home.devices.length === 0) await putInHome();
}

export async function putInHome() {
  await ask("PUT", "/devices", JSON.parse(await pageFile("examples/home.json")));
}
