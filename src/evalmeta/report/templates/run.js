"use strict";
// Without scripts, the page still folds, and filters by verdict.
const SEARCHED = ".nr, .utterance, .question, .answer, .why, .problem, .pair pre, .actions code, .result h3 b, .result h3 code";
const find = document.querySelector("[type=search]");
const toggle = document.querySelector(".toggle");
const keys = document.getElementById("keys");
const cases = [...document.querySelectorAll(".case")];
const rests = [...document.querySelectorAll(".rest")];
const wasOpen = new Map();
const texts = new Map();

function textOf(element) {
  if (!texts.has(element)) {
    texts.set(element, [...element.querySelectorAll(SEARCHED)].map((part) => part.textContent).join("\n").toLowerCase());
  }
  return texts.get(element);
}

function refresh() {
  const chosen = document.querySelector("[name=show]:checked").value;
  const wanted = find.value.trim().toLowerCase();
  const isFiltered = wanted !== "" || chosen !== "all";
  const shown = new Set();
  for (const element of cases) {
    element.hidden = wanted !== "" && !textOf(element).includes(wanted);
    if (!element.hidden && (chosen === "all" || element.classList.contains(chosen))) shown.add(element);
  }
  const isEmpty = (part) => ![...part.querySelectorAll(".case")].some((element) => shown.has(element));
  for (const rest of rests) {
    if (isFiltered && !wasOpen.has(rest)) wasOpen.set(rest, rest.open);
    rest.hidden = isFiltered && isEmpty(rest);
    rest.open = isFiltered || (wasOpen.get(rest) ?? rest.open);
    if (!isFiltered) wasOpen.delete(rest);
  }
  for (const run of document.querySelectorAll(".run")) run.querySelector(".nothing").hidden = !isFiltered || !isEmpty(run);
  document.querySelector(".found").textContent = isFiltered ? `${shown.size} of ${cases.length} cases` : "";
}

const visible = () => cases.filter((element) => element.checkVisibility());

function step(by) {
  const shown = visible();
  const at = shown.indexOf(document.activeElement.closest(".case"));
  const next = shown[at < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.min(Math.max(at + by, 0), shown.length - 1)];
  next?.querySelector("summary").focus({ preventScroll: true });
  next?.scrollIntoView({ block: next.open ? "start" : "nearest" });
}

const KEYS = { j: () => step(1), k: () => step(-1), "/": () => find.focus(), "?": () => keys.showModal() };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("[type=search], dialog")) return;
  if (!(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});

for (const element of [find, toggle, document.querySelector(".keys")]) element.hidden = cases.length === 0;
find.addEventListener("input", refresh);
document.querySelector(".filter").addEventListener("change", refresh);
document.querySelector(".keys").addEventListener("click", KEYS["?"]);
keys.querySelector("button").addEventListener("click", () => keys.close());
toggle.addEventListener("click", () => {
  const open = toggle.textContent === "open all";
  if (open && !visible().length) for (const rest of rests) rest.open = true;
  for (const element of visible()) element.open = open;
  toggle.textContent = open ? "close all" : "open all";
});
refresh();
