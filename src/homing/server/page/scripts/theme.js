// Light, dark, or as the system says.

const KEPT = "homing.theme";
const ORDER = ["auto", "light", "dark"];

export function theme() {
  const kept = localStorage.getItem(KEPT);
  return ORDER.includes(kept) ? kept : "auto";
}

export function applyTheme() {
  const chosen = theme();
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

export function nextTheme() {
  localStorage.setItem(KEPT, ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length]);
  applyTheme();
}
