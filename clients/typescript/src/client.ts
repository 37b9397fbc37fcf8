/**
 * Starts `homing ipc` and speaks with it: typed channels, cancellation, progress, a clean end.
 * One message is one line of JSON (JSON-RPC 2.0). No dependencies.
 */
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { PROTOCOL_VERSION } from "./channels.ts";
import type { ChannelName, Channels } from "./channels.ts";
import { HomingError, asked, checked, refused, takenBack } from "./envelope.ts";
import type { ClientErrorCode, Envelope, InvokeOptions, Progress } from "./envelope.ts";

export interface StartOptions {
  /** The program; `homing` on the PATH where it is not given. */
  command?: string;
  /** Arguments before `ipc`, such as `["-m", "homing"]` after a Python. */
  args?: readonly string[];
  /** The data folder. */
  data?: string;
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Gets every line that Homing logs. */
  onLog?: (line: string) => void;
  /** Called once when the process has ended, whoever ended it. */
  onExit?: (code: number | null, signal: string | null) => void;
  /** How long the process may take to greet; 30 s. */
  startTimeoutMs?: number;
}

export interface Greeting {
  protocolVersion: number;
  server: { name: string; version: string };
  channels: string[];
  limits: { messageBytes: number; pending: number; pendingBytes: number };
}

interface Waiting {
  resolve: (result: unknown) => void;
  reject: (error: HomingError) => void;
  onProgress: ((progress: Progress) => void) | undefined;
}

interface Incoming {
  id?: number | null;
  method?: string;
  params?: { id: number } & Progress;
  result?: unknown;
  error?: { code: number; message: string; data?: { code?: ClientErrorCode; details?: Record<string, unknown> } };
}

const NEWLINE = 0x0a;
const KEPT_LOG_LINES = 20;

export class HomingClient {
  /** What Homing said when it was greeted: its version, its channels, its limits. */
  greeting!: Greeting;

  readonly #process: ChildProcessWithoutNullStreams;
  readonly #waiting = new Map<number, Waiting>();
  readonly #exited: Promise<void>;
  readonly #log: string[] = [];
  #lastId = 0;
  #gone: HomingError | undefined;

  private constructor(options: StartOptions) {
    const given = options.data === undefined ? [] : ["--data", options.data];
    this.#process = spawn(options.command ?? "homing", [...(options.args ?? []), "ipc", ...given], {
      stdio: "pipe",
      cwd: options.cwd,
      env: options.env,
    });
    lines(this.#process.stdout, (line) => this.#receive(line));
    lines(this.#process.stderr, (line) => {
      this.#log.push(line);
      if (this.#log.length > KEPT_LOG_LINES) this.#log.shift();
      options.onLog?.(line);
    });
    // A write after the process is gone is told by the exit, which rejects all that waits.
    this.#process.stdin.on("error", () => {});
    this.#exited = new Promise((resolve) => {
      this.#process.once("error", (error) => {
        this.#end("NOT_STARTED", `cannot start homing: ${error.message}; install it, or say where it is in \`command\``);
        resolve();
      });
      this.#process.once("close", (code, signal) => {
        this.#end("CLOSED", `homing has ended (${signal ?? `exit code ${code}`}); start it again`);
        options.onExit?.(code, signal);
        resolve();
      });
    });
  }

  /** Start Homing and greet it. Rejects with NOT_STARTED, CLOSED, TIMEOUT or PROTOCOL_MISMATCH. */
  static async start(options: StartOptions = {}): Promise<HomingClient> {
    const client = new HomingClient(options);
    const signal = AbortSignal.timeout(options.startTimeoutMs ?? 30_000);
    try {
      const params = { protocolVersion: PROTOCOL_VERSION, client: { name: "homing-client" } };
      client.greeting = (await client.#call("initialize", params, { signal })) as Greeting;
    } catch (error) {
      client.#process.kill("SIGKILL");
      await client.#exited;
      throw error;
    }
    return client;
  }

  /** The process id of Homing. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Ask a channel; rejects with a HomingError. Offsets count as JavaScript's strings do, unless `offsetUnit` is sent. */
  async invoke<Name extends ChannelName>(
    channel: Name,
    request: Channels[Name]["request"],
    options: InvokeOptions = {},
  ): Promise<Channels[Name]["response"]> {
    const answer = await this.request(channel, request, options);
    if (!answer.ok) throw new HomingError(answer.error);
    return answer.data;
  }

  /** The same, with the envelope: never rejects. */
  async request<Name extends ChannelName>(
    channel: Name,
    request: Channels[Name]["request"],
    options: InvokeOptions = {},
  ): Promise<Envelope<Channels[Name]["response"]>> {
    try {
      return checked(channel, await this.#call(channel, asked(channel, request), options));
    } catch (error) {
      return refused(error);
    }
  }

  /** Let what is under way finish, take back what is long, and end the process; by force after `timeoutMs`. */
  async close(timeoutMs = 15_000): Promise<void> {
    const force = setTimeout(() => this.#process.kill("SIGKILL"), timeoutMs);
    try {
      await this.#call("shutdown", undefined, {});
      this.#write({ jsonrpc: "2.0", method: "exit" });
    } catch {
      // It has ended already, which is what was wanted.
    }
    this.#process.stdin.end();
    await this.#exited;
    clearTimeout(force);
  }

  #call(method: string, params: unknown, { signal, onProgress }: InvokeOptions): Promise<unknown> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      if (this.#gone !== undefined) return reject(this.#gone);
      if (signal?.aborted) return reject(takenBack(signal));
      const abort = (): void => {
        this.#write({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id } });
        this.#settle(id)?.reject(takenBack(signal!));
      };
      const settled = <Value>(tell: (value: Value) => void) => (value: Value): void => {
        signal?.removeEventListener("abort", abort);
        tell(value);
      };
      this.#waiting.set(id, { resolve: settled(resolve), reject: settled(reject), onProgress });
      signal?.addEventListener("abort", abort, { once: true });
      this.#write({ jsonrpc: "2.0", id, method, params });
    });
  }

  #write(message: object): void {
    if (this.#process.stdin.writable) this.#process.stdin.write(`${JSON.stringify(message)}\n`);
  }

  #receive(line: string): void {
    let message: Incoming;
    try {
      message = JSON.parse(line) as Incoming;
    } catch {
      this.#end("PROTOCOL_ERROR", `what was started does not speak the protocol: ${line.slice(0, 200)}`);
      this.#process.kill("SIGKILL");
      return;
    }
    if (message.method === "$/progress" && message.params !== undefined) {
      const { id, done, total } = message.params;
      this.#waiting.get(id)?.onProgress?.({ done, total });
    } else if (typeof message.id === "number") {
      const waiting = this.#settle(message.id);
      if (message.error === undefined) waiting?.resolve(message.result);
      else waiting?.reject(protocolError(message.error));
    }
  }

  #settle(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }

  #end(code: ClientErrorCode, message: string): void {
    this.#gone ??= new HomingError({ code, message, details: { log: [...this.#log] } });
    for (const id of [...this.#waiting.keys()]) this.#settle(id)?.reject(this.#gone);
  }
}

function protocolError(error: NonNullable<Incoming["error"]>): HomingError {
  const { code = "PROTOCOL_ERROR", details = {} } = error.data ?? {};
  return new HomingError({ code, message: error.message, details });
}

/** Tells every whole line. Bytes are joined before they are decoded: a character may be cut in two. */
function lines(stream: NodeJS.ReadableStream, tell: (line: string) => void): void {
  let pieces: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => {
    let rest = chunk;
    for (let at = rest.indexOf(NEWLINE); at !== -1; at = rest.indexOf(NEWLINE)) {
      pieces.push(rest.subarray(0, at));
      const line = Buffer.concat(pieces).toString("utf8").trim();
      pieces = [];
      rest = rest.subarray(at + 1);
      if (line !== "") tell(line);
    }
    if (rest.length > 0) pieces.push(rest);
  });
}
