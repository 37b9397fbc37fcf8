/** The HTTP client against a real `homing serve`, whose address is in HOMING_URL. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { HomingError, HomingHttp } from "../src/http.ts";

const url = process.env.HOMING_URL;
const text = "房间里只剩下她自己，夜里她常对着空椅子说话。\n\n😀 Her silver key hangs on a chain.";

describe("over HTTP", { skip: url === undefined && "HOMING_URL is not set" }, () => {
  const homing = new HomingHttp(`${url}/`);

  test("what is saved is found in both languages, with places as JavaScript counts them", async () => {
    await homing.invoke("document:save", { projectId: "novel", documentId: "第一章", text });
    await homing.invoke("embedding:status", { waitMs: 30_000 });
    for (const [query, word] of [["孤独的感觉", "空椅子"], ["谁有 silver key", "silver key"]] as const) {
      const { results } = await homing.invoke("embedding:search", { projectId: "novel", query, mode: "hybrid", minScore: 0 });
      const [best] = results;
      assert.ok(best !== undefined && best.text.includes(word));
      assert.equal(text.slice(best.startOffset, best.endOffset), best.text);
    }
  });

  test("errors have the codes of Homing", async () => {
    const envelope = await homing.request("document:save", { projectId: "", documentId: "x", text: "" });
    assert.equal(!envelope.ok && envelope.error.code, "INVALID_ARGUMENT");
    await assert.rejects(
      homing.invoke("document:save", { projectId: "", documentId: "x", text: "" }),
      (error) => error instanceof HomingError && error.code === "INVALID_ARGUMENT",
    );
  });

  test("a request can be taken back", async () => {
    const envelope = await homing.request("embedding:status", { waitMs: 0 }, { signal: AbortSignal.abort() });
    assert.equal(!envelope.ok && envelope.error.code, "CANCELED");
  });

  test("what is no Homing is told apart from what is not there", async () => {
    const stranger = createServer((_, answer) => answer.end("<html>hello</html>"));
    await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", resolve));
    const address = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`;
    const other = await new HomingHttp(address).request("embedding:status", {});
    assert.equal(!other.ok && other.error.code, "PROTOCOL_ERROR");
    await new Promise((resolve) => stranger.close(resolve));
    const gone = await new HomingHttp(address).request("embedding:status", {});
    assert.equal(!gone.ok && gone.error.code, "NOT_STARTED");
  });
});
