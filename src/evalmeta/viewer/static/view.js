"use strict";
// Everything here is a convenience: pages can be read, searched and changed without it.
const rows = () => [...document.querySelectorAll("[data-row]")].filter((each) => each.getClientRects().length);
const current = () => document.querySelector("[data-row].current");

function choose(row) {
  current()?.classList.remove("current");
  row.classList.add("current");
  row.scrollIntoView({ block: "nearest" });
  (row.querySelector("a, summary") ?? row).focus({ preventScroll: true });
}

function step(by) {
  const all = rows();
  const at = all.indexOf(current());
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  if (next) choose(next);
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  n: () => document.querySelector("a[rel=next]")?.click(),
  p: () => document.querySelector("a[rel=prev]")?.click(),
  "/": () => document.querySelector("input[type=search]")?.focus(),
  "?": () => document.getElementById("keys").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  if (!(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (button?.matches(".keys")) KEYS["?"]();
  if (!button?.matches(".copy")) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});

// The page is loaded again when runs change; what is open and focused stays so.
function follow() {
  const address = document.body.dataset.live;
  if (!address) return;
  const events = new EventSource(address);
  events.addEventListener("change", () => {
    htmx.ajax("GET", location.href, { source: "#content", target: "#content", select: "#content", swap: "outerMorph" });
  });
  addEventListener("pagehide", () => events.close());
}

function prepare(root) {
  for (const button of root.querySelectorAll(".copy, .keys")) button.hidden = button.matches(".copy") && !navigator.clipboard;
}

prepare(document);
document.addEventListener("htmx:after:swap", () => prepare(document));
follow();
