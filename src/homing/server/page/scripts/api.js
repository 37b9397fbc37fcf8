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

/** One request; `body` is sent as JSON. The answer is read as JSON, or as `plain` text. */
export async function ask(method, path, body, { signal, plain = false } = {}) {
  const response = await send(method, path, body, signal);
  if (response.status === 204) return null;
  return plain ? response.text() : response.json();
}

/** Sends a file of the user's; `progress` gets the share that is sent. Resolves with the answer. */
export async function sendFile(path, file, progress) {
  const form = new FormData();
  form.append("file", file, file.name);
  const request = new XMLHttpRequest();
  request.open("POST", path);
  const token = sessionStorage.getItem(KEPT);
  if (token) request.setRequestHeader("authorization", `Bearer ${token}`);
  request.upload.addEventListener("progress", (event) => progress(event.loaded / Math.max(1, event.total)));
  await new Promise((resolve) => {
    request.addEventListener("loadend", resolve);
    request.send(form);
  });
  if (request.status === 0) throw new ApiError(0, "NETWORK", "");
  if (request.status === 401 && askForToken !== null) {
    await askForToken();
    return sendFile(path, file, progress);
  }
  if (request.status >= 400) throw refusal(request.status, request.statusText, request.responseText);
  return JSON.parse(request.responseText);
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
  throw refusal(response.status, response.statusText, await response.text());
}

function refusal(status, plain, body) {
  let told = {};
  try {
    told = JSON.parse(body).error ?? {};
  } catch {
    // Not one of the server's own answers: the status is all there is to say.
  }
  return new ApiError(status, told.code ?? `HTTP_${status}`, told.message ?? plain, told);
}
