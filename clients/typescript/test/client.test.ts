/**
 * The client against a real `homing ipc`. HOMING_COMMAND holds the command as a JSON list; `homing` where it is not set.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { HomingClient, HomingError, PROGRESS, handleChannels } from "../src/index.ts";
import type { Bridge, ClientErrorCode, StartOptions, WindowEvent } from "../src/index.ts";

const [command, ...args] = JSON.parse(process.env.HOMING_COMMAND ?? '["homing"]') as [string, ...string[]];
const chapter = [
  "房间里只剩下她自己，电话再也没有响过，夜里她常对着空椅子说话。",
  "😀 沈舟怕水，七岁那年他差点在河里淹死。",
  "She keeps her mother's silver key 🗝️ on a chain around her neck.",
  "港口的吊车停了，码头上堆满了 container 和漂流木。",
].join("\n\n");

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "homing-client-"));
});
after(async () => {
  await rm(folder, { recursive: true, force: true });
});

function start(options: StartOptions = {}): Promise<HomingClient> {
  return HomingClient.start({ command, args, cwd: folder, ...options });
}

function code(expected: ClientErrorCode): (error: unknown) => boolean {
  return (error) => error instanceof HomingError && error.code === expected;
}

describe("with the bundled model", () => {
  let homing: HomingClient;
  before(async () => {
    homing = await start({ data: join(folder, "data") });
    const saved = await homing.invoke("document:save", { projectId: "novel", documentId: "ch1", text: chapter });
    assert.equal(saved.changed.length, 4);
    const { pending } = await homing.invoke("embedding:status", { waitMs: 30_000 });
    assert.equal(pending, 0);
  });
  after(() => homing.close());

  test("the greeting tells versions, channels and limits", () => {
    assert.equal(homing.greeting.protocolVersion, 1);
    assert.ok(homing.greeting.channels.includes("embedding:search"));
    assert.ok(homing.greeting.limits.messageBytes > 1_000_000);
  });

  for (const [query, word] of [
    ["孤独的感觉", "空椅子"],
    ["who is afraid of water", "沈舟"],
    ["谁有一把 silver key", "silver key"],
  ] as const) {
    test(`meaning is found: ${query}`, async () => {
      const found = await homing.invoke("embedding:search", { projectId: "novel", query, minScore: 0.3 });
      assert.equal(found.mode, "semantic");
      assert.ok(found.results[0]?.text.includes(word));
      for (const one of found.results) assert.equal(chapter.slice(one.startOffset, one.endOffset), one.text);
    });
  }

  test("places slice JavaScript strings, emoji or not", async () => {
    const { results } = await homing.invoke("search:fts:query", { projectId: "novel", query: "漂流木" });
    const [found] = results;
    assert.ok(found);
    const [place] = found.highlights;
    assert.ok(place);
    assert.equal(chapter.slice(place.start, place.end), "漂流木");
    const counted = await homing.invoke("search:fts:query", {
      projectId: "novel",
      query: "漂流木",
      offsetUnit: "characters",
    });
    assert.ok(counted.results[0]!.startOffset < found.startOffset);
  });

  test("a hundred requests at once each get their own answer", async () => {
    const words = ["空椅子", "怕水", "silver", "码头"];
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, at) =>
        homing.invoke("search:fts:query", { projectId: "novel", query: words[at % 4]! }),
      ),
    );
    answers.forEach((answer, at) => assert.ok(answer.results[0]?.text.includes(words[at % 4]!)));
  });

  test("a refusal rejects with its code, or comes in its envelope", async () => {
    const wrong = { projectId: "novel", query: "q", topK: 0 };
    await assert.rejects(homing.invoke("embedding:search", wrong), code("INVALID_ARGUMENT"));
    const envelope = await homing.request("document:text", { projectId: "novel", documentId: "none" });
    assert.ok(!envelope.ok);
    assert.equal(envelope.error.code, "NOT_FOUND");
  });

  test("retrieval for a prompt keeps to its budget", async () => {
    const found = await homing.invoke("rag:retrieve", { projectId: "novel", query: "沈舟走到河边", maxTokens: 40 });
    assert.ok(found.chunks[0]?.text.includes("沈舟怕水"));
    assert.ok(found.usedTokens <= 40);
    const none = await homing.invoke("rag:retrieve", { projectId: "novel", query: "Kubernetes ingress rules" });
    assert.deepEqual(none.chunks, []);
  });

  test("windows of a desktop app reach every channel", async () => {
    const handlers = new Map<string, Parameters<Bridge["handle"]>[1]>();
    handleChannels({ handle: (channel, listener) => handlers.set(channel, listener) }, homing);
    const told: unknown[][] = [];
    const event: WindowEvent = { sender: { send: (...args) => told.push(args) } };
    const found = await handlers.get("search:fts:query")!(event, { projectId: "novel", query: "怕水" });
    assert.equal((found as { ok: boolean }).ok, true);
    assert.equal(((await handlers.get("project:list")!(event, undefined)) as { ok: boolean }).ok, true);
    await handlers.get("embedding:reindex")!(event, { projectId: "novel" });
    assert.deepEqual(told.at(-1), [PROGRESS, { channel: "embedding:reindex", done: 4, total: 4 }]);
  });

  test("a signal that was aborted before never sends", async () => {
    const signal = AbortSignal.abort();
    await assert.rejects(homing.invoke("project:list", {}, { signal }), code("CANCELED"));
  });
});

describe("with a slow model elsewhere", () => {
  let delay = 0;
  const api = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", async () => {
      await sleep(delay);
      const texts = (JSON.parse(body) as { input: string[] }).input;
      const data = texts.map((text, index) => ({ index, embedding: vector(text) }));
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ data }));
    });
  });
  let homing: HomingClient;
  let exit: Array<number | string | null> = [];

  before(async () => {
    await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
    const { port } = api.address() as AddressInfo;
    const cwd = await mkdtemp(join(folder, "slow-"));
    await writeFile(
      join(cwd, "homing.toml"),
      `embedding = {provider_id = "there", model = "text-embedding-3-small", dimensions = 64}\n` +
        `[providers.there]\ntype = "openai"\napi_key = "k"\nbase_url = "http://127.0.0.1:${port}/v1"\n`,
    );
    homing = await start({ cwd, data: join(cwd, "data"), onExit: (...how) => (exit = how) });
  });
  after(() => {
    api.closeAllConnections();
    api.close();
  });

  test("a reindex tells how far it is, and can be taken back", async () => {
    delay = 200;
    const text = Array.from({ length: 300 }, (_, at) => `第${at}段：灯塔 number ${at} 亮了一整夜。`).join("\n\n");
    await homing.invoke("document:save", { projectId: "p", documentId: "d", text });
    const controller = new AbortController();
    let told = 0;
    const reindexing = homing.invoke(
      "embedding:reindex",
      { batchSize: 8 },
      {
        signal: controller.signal,
        onProgress: ({ done, total }) => {
          told += 1;
          assert.ok(done <= total);
          controller.abort();
        },
      },
    );
    await assert.rejects(reindexing, code("CANCELED"));
    assert.ok(told >= 1);
    delay = 0;
    const done = await homing.invoke("embedding:reindex", {});
    assert.equal(done.pending, 0);
  });

  test("a time limit is a time limit", async () => {
    delay = 1000;
    const signal = AbortSignal.timeout(50);
    await assert.rejects(homing.invoke("embedding:generate", { texts: ["late"] }, { signal }), code("TIMEOUT"));
    delay = 0;
    assert.equal((await homing.invoke("embedding:generate", { texts: ["in time"] })).dimensions, 64);
  });

  test("closing ends the process, and what comes after is refused", async () => {
    await homing.close();
    assert.deepEqual(exit, [0, null]);
    await assert.rejects(homing.invoke("project:list", {}), code("CLOSED"));
    await homing.close();
  });
});

test("a process that is killed rejects what it was asked", async () => {
  const homing = await start({ data: join(folder, "killed") });
  const waiting = homing.invoke("embedding:status", { waitMs: 60_000 });
  const asked = homing.invoke("embedding:generate", { texts: Array.from({ length: 2000 }, (_, at) => `text ${at}`) });
  process.kill(homing.pid!, "SIGKILL");
  await assert.rejects(asked, code("CLOSED"));
  await waiting.catch(code("CLOSED"));
  await homing.close();
});

test("what cannot be started says why", async () => {
  await assert.rejects(HomingClient.start({ command: join(folder, "no-such-program") }), code("NOT_STARTED"));
  const cwd = await mkdtemp(join(folder, "wrong-"));
  await writeFile(join(cwd, "homing.toml"), '[embedding]\nprovider = "nonsense"\n');
  await assert.rejects(start({ cwd }), (error: unknown) => {
    assert.ok(code("CLOSED")(error));
    return JSON.stringify((error as HomingError).details).includes("CONFIG_INVALID");
  });
});

test("another version, and another program, are told apart", async () => {
  const newer = `process.stdin.once("data", () => console.log(JSON.stringify({jsonrpc: "2.0", id: 1, error:
    {code: -32000, message: "update the client", data: {code: "PROTOCOL_MISMATCH", details: {}}}})))`;
  const node = { command: process.execPath };
  await assert.rejects(HomingClient.start({ ...node, args: ["-e", newer, "--"] }), code("PROTOCOL_MISMATCH"));
  const other = { ...node, args: ["-e", 'console.log("hello"); setInterval(() => {}, 1000)', "--"] };
  await assert.rejects(HomingClient.start(other), code("PROTOCOL_ERROR"));
});

test("an answer that is not what the types say is refused where it arrives", async () => {
  const entry = '{"projectId": "p", "documents": 1, "chunks": 2, "pending": 0, "follows": "", "added later": true}';
  const answers: Array<[string, RegExp | undefined]> = [
    [`{"ok": true, "data": {"projects": [${entry}], "more": 1}}`, undefined],
    [`{"ok": true, "data": {"projects": [${entry.replace("2", '"two"')}]}}`, /data\.projects\[0\]\.chunks is not of type/],
    ['{"ok": true, "data": {}}', /data\.projects is missing/],
    ['{"ok": true}', /data is not of type object/],
    ['{"ok": false, "error": {"message": "", "details": {}}}', /data\.code is missing/],
    ["null", /no envelope/],
  ];
  const script = `const answers = ${JSON.stringify(answers.map(([answer]) => answer))};
    let at = -1;
    require("readline").createInterface({input: process.stdin}).on("line", (line) => {
      const {id, method} = JSON.parse(line);
      if (method === "exit") process.exit(0);
      const result = method === "project:list" ? answers[++at] : "{}";
      console.log('{"jsonrpc": "2.0", "id": ' + id + ', "result": ' + result + "}");
    });`;
  const homing = await HomingClient.start({ command: process.execPath, args: ["-e", script, "--"] });
  try {
    for (const [, wrong] of answers) {
      const answer = await homing.request("project:list", {});
      if (wrong === undefined) assert.ok(answer.ok);
      else assert.ok(!answer.ok && answer.error.code === "PROTOCOL_ERROR" && wrong.test(answer.error.message));
    }
  } finally {
    await homing.close();
  }
});

function vector(text: string): number[] {
  const row = Array.from({ length: 64 }, (_, at) => Math.sin((at + 1) * (text.length + text.codePointAt(at % text.length)!)));
  const length = Math.hypot(...row);
  return row.map((value) => value / length);
}
