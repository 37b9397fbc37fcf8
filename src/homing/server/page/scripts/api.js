// Asks the server. Answers are data; refusals are ApiError with the server's stable code.

const KEPT = "homing.token";
let askForToken = null;

export class ApiError extends Error {
  constructor(status, code, message, { details, notice } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
    this.notice = notice;
  }
}

/** Who to call when the server wants a token; resolves once there is one. */
export function onTokenNeeded(listener) {
  askForToken = listener;
}

export function keepToken(token) {
  sessionStorage.setItem(KEPT, token);
}

/** One request; `body` is sent as JSON. */
export async function ask(method, path, body, { signal } = {}) {
  const response = await send(method, path, body, signal);
  if (response.status === 204) return null;
  return response.json();
}

/** What a file of the user's says: {text, notes}. The server reads it, whatever its format and encoding. */
export async function textOf(file) {
  const form = new FormData();
  form.append("file", file, file.name);
  return (await send("POST", "/files/text", form)).json();
}

/** The text of a file that belongs to the page. */
export async function pageFile(path) {
  return (await send("GET", `/page/${path}`)).text();
}

/** The events of a job as they come: an async iterator of {event, data}. */
export async function* events(path, signal) {
  const response = await send("GET", path, undefined, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    waiting += value.replaceAll("\r\n", "\n");
    const parts = waiting.split("\n\n");
    waiting = parts.pop();
    for (const part of parts) {
      const event = readEvent(part);
      if (event !== null) yield event;
    }
  }
}

function readEvent(part) {
  let name = "message";
  const data = [];
  for (const line of part.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  if (data.length === 0) return null;
  return { event: name, data: JSON.parse(data.join("\n")) };
}

async function send(method, path, body, signal) {
  const headers = {};
  const token = sessionStorage.getItem(KEPT);
  if (token) headers.authorization = `Bearer ${token}`;
  const isForm = body instanceof FormData;
  if (body !== undefined && !isForm) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined || isForm ? body : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "NETWORK", "");
  }
  if (response.ok) return response;
  if (response.status === 401 && askForToken !== null) {
    await askForToken();
    return send(method, path, body, signal);
  }
  let told = {};
  try {
    told = (await response.json()).error ?? {};
  } catch {
    // Not one of the server's own answers: the status is all there is to say.
  }
  throw new ApiError(
    response.status,
    told.code ?? `HTTP_${response.status}`,
    told.message ?? response.statusText,
    told,
  );
}
