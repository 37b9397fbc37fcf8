/** What a channel is asked and answers, whatever carries it: a process, or HTTP. */
import { CHANNELS_WITH_OFFSETS, RESPONSES, SHAPES } from "./channels.ts";
import type { ChannelError, ChannelName, Channels, ErrorCode } from "./channels.ts";
import { mismatch } from "./check.ts";

/** What a channel answers, as it crosses Electron's bridge: an Error thrown there would lose its code. */
export type Envelope<Data> = { ok: true; data: Data } | { ok: false; error: ClientError };

/** The codes of Homing, and those that only a client can tell. */
export type ClientErrorCode = ErrorCode | "CLOSED" | "NOT_STARTED" | "PROTOCOL_MISMATCH" | "PROTOCOL_ERROR";

export interface ClientError extends Omit<ChannelError, "code"> {
  code: ClientErrorCode;
}

/** Why a request was not served. `code` is stable; `message` says what to do next. */
export class HomingError extends Error {
  readonly code: ClientErrorCode;
  readonly details: Record<string, unknown>;

  constructor(error: ClientError) {
    super(error.message);
    this.name = "HomingError";
    this.code = error.code;
    this.details = error.details;
  }
}

export interface Progress {
  done: number;
  total: number;
}

export interface InvokeOptions {
  /** Takes the request back: CANCELED, or TIMEOUT where the signal is one of `AbortSignal.timeout`. */
  signal?: AbortSignal;
  /** Told now and then how far a long request is (`embedding:reindex`). */
  onProgress?: (progress: Progress) => void;
}

const counted: ReadonlySet<string> = new Set(CHANNELS_WITH_OFFSETS);

/** The request as it is sent: places in a text count as JavaScript's strings do, unless it says otherwise. */
export function asked<Name extends ChannelName>(channel: Name, request: Channels[Name]["request"]): object {
  return counted.has(channel) ? { offsetUnit: "utf-16", ...request } : request;
}

/** The envelope of an error of ours; any other is thrown again. */
export function refused(error: unknown): { ok: false; error: ClientError } {
  if (!(error instanceof HomingError)) throw error;
  return { ok: false, error: { code: error.code, message: error.message, details: error.details } };
}

/** The envelope, where it is one and holds what the channel answers with; an error that says what is wrong elsewhere. */
export function checked<Name extends ChannelName>(channel: Name, answer: unknown): Envelope<Channels[Name]["response"]> {
  const envelope = answer as Envelope<Channels[Name]["response"]>;
  const shape = envelope?.ok === false ? "ChannelError" : RESPONSES[channel];
  const inside = envelope?.ok === false ? envelope.error : envelope?.data;
  const wrong = typeof envelope?.ok === "boolean" ? mismatch(inside, { $ref: shape }, SHAPES) : "it is no envelope";
  if (wrong === undefined) return envelope;
  const message = `the answer of ${channel} is not what it should be: ${wrong}; use a client of the same version`;
  return { ok: false, error: { code: "PROTOCOL_ERROR", message, details: { channel } } };
}

export function takenBack(signal: AbortSignal): HomingError {
  const late = (signal.reason as { name?: string } | undefined)?.name === "TimeoutError";
  const message = late ? "no answer before the time was up" : "the request was canceled";
  return new HomingError({ code: late ? "TIMEOUT" : "CANCELED", message, details: {} });
}
