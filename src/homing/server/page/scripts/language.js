// Which language the interface speaks: the one chosen here before, else the browser's.

import { WORDS } from "./words.js";

const KEPT = "homing.language";
let current = localStorage.getItem(KEPT) ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

/** "zh" or "en". */
export function language() {
  return current;
}

export function toggleLanguage() {
  current = current === "zh" ? "en" : "zh";
  localStorage.setItem(KEPT, current);
}

/** The words for a key, with {names} filled in. */
export function t(key, values = {}) {
  const both = WORDS[key];
  if (both === undefined) return key;
  // In English, what stands before the bar is for one.
  const forms = both[current === "zh" ? 0 : 1].split("|");
  const text = forms[Number(values.n) === 1 ? 0 : forms.length - 1];
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** The words for a key where there are any, else what the server calls it. */
export function named(prefix, name) {
  const key = `${prefix}.${name}`;
  return key in WORDS ? t(key) : String(name);
}

/** A sentence that the server says in both languages, or in one. */
export function told(notice) {
  if (notice === null || notice === undefined) return "";
  if (typeof notice === "string") return notice;
  return notice[current] ?? notice.zh ?? notice.en ?? "";
}

export function number(value, digits = 0) {
  return Number(value).toLocaleString(current === "zh" ? "zh-CN" : "en", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

export function percent(share) {
  return `${Math.round(share * 100)} %`;
}
