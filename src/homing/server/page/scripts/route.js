// The address says what is shown: #/view/part/part?q=question.

export function readRoute() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, ...parts] = path
    .split("/")
    .map(decodePart)
    .filter((part) => part !== "");
  return { view: view ?? "all", parts, query: new URLSearchParams(search).get("q") ?? "" };
}

export function addressOf(view, parts = [], query = "") {
  const path = [view, ...parts].map(encodeURIComponent).join("/");
  return `#/${path}${query ? `?q=${encodeURIComponent(query)}` : ""}`;
}

/** Shows another view; the back button returns. */
export function go(view, parts = [], query = "") {
  location.hash = addressOf(view, parts, query);
}

/** Notes the question in the address without a new step in the history. */
export function noteQuery(query) {
  const { view, parts } = readRoute();
  history.replaceState(null, "", addressOf(view, parts, query));
}

function decodePart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
