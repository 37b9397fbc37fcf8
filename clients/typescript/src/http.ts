/**
 * Speaks with a running `homing serve` over HTTP: the same channels, types and checks as over a process, in Node and in
 * browsers. No dependencies.
 */
import type { ChannelName, Channels } from "./channels.ts";
import { HomingError, asked, checked, refused, takenBack } from "./envelope.ts";
import type { Envelope, InvokeOptions } from "./envelope.ts";

export * from "./channels.ts";
export * from "./envelope.ts";

export interface HttpOptions {
  /** The token of a user, where the server has tokens. */
  token?: string;
  /** What sends requests; the `fetch` of Node or the browser where it is not given. */
  fetch?: typeof fetch;
}

export class HomingHttp {
  readonly #url: string;
  readonly #options: HttpOptions;

  /** `url` is the server's address, such as `http://127.0.0.1:8765`. Nothing is sent before the first request. */
  constructor(url: string, options: HttpOptions = {}) {
    this.#url = url.replace(/\/+$/, "");
    this.#options = options;
  }

  /** Ask a channel; rejects with a HomingError. */
  async invoke<Name extends ChannelName>(
    channel: Name,
    request: Channels[Name]["request"],
    options: Pick<InvokeOptions, "signal"> = {},
  ): Promise<Channels[Name]["response"]> {
    const answer = await this.request(channel, request, options);
    if (!answer.ok) throw new HomingError(answer.error);
    return answer.data;
  }

  /** The same, with the envelope: never rejects. Aborting takes the request back. */
  async request<Name extends ChannelName>(
    channel: Name,
    request: Channels[Name]["request"],
    { signal }: Pick<InvokeOptions, "signal"> = {},
  ): Promise<Envelope<Channels[Name]["response"]>> {
    try {
      return checked(channel, await this.#post(channel, asked(channel, request), signal));
    } catch (error) {
      return refused(signal?.aborted ? takenBack(signal) : error);
    }
  }

  async #post(channel: string, request: object, signal: AbortSignal | undefined): Promise<unknown> {
    const { token, fetch: send = fetch } = this.#options;
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    let text: string;
    try {
      const body = JSON.stringify(request);
      const answer = await send(`${this.#url}/ipc/${channel}`, { method: "POST", headers, body, ...(signal && { signal }) });
      text = await answer.text();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const message = `no answer from ${this.#url}: ${why}; start it with: homing serve`;
      throw new HomingError({ code: "NOT_STARTED", message, details: {} });
    }
    try {
      return JSON.parse(text);
    } catch {
      const message = `what is at ${this.#url} is no Homing: ${text.slice(0, 200)}`;
      throw new HomingError({ code: "PROTOCOL_ERROR", message, details: {} });
    }
  }
}
