"use strict";
// Everything here is a convenience: pages can be read, searched and changed without it.
const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.getClientRects().length);
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
  "?": () => document.querySelector("dialog").showModal(),
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

// Change a node into another one. Nodes that both have are kept, with their focus and what was typed into them.
function change(old, made) {
  if (old.isEqualNode(made)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = made.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of made.attributes) old.setAttribute(name, value);
  changeChildren(old, made);
}

// Children with an id are found by it, all others by their order.
function changeChildren(old, made) {
  const byId = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  const wanted = new Set([...made.children].map((child) => child.id));
  let at = old.firstChild;
  for (const child of [...made.childNodes]) {
    const same = child.id ? byId.get(child.id) : at?.id ? null : at;
    if (same?.nodeName !== child.nodeName) {
      old.insertBefore(child, at);
      continue;
    }
    while (at && at !== same && !wanted.has(at.id)) at = next(at);
    if (at === same) at = at.nextSibling;
    else old.insertBefore(same, at);
    change(same, child);
  }
  while (at) at = next(at);
}

// Remove a node, and return the one behind it.
function next(node) {
  const after = node.nextSibling;
  node.remove();
  return after;
}

// Show another state of the page. The last call counts; the answer to a live event is shown only if it is not an error.
let loading;
async function load(address, { isLive = false } = {}) {
  loading?.abort();
  const own = loading = new AbortController();
  let reply, text;
  try {
    reply = await fetch(address, { signal: own.signal });
    text = await reply.text();
  } catch {
    return; // The server has stopped, or a later call is under way.
  }
  if (reply.status === 401) location.assign(address);
  const made = new DOMParser().parseFromString(text, "text/html");
  const page = made.getElementById("page");
  if (own !== loading || !page || (isLive && !reply.ok)) return;
  const row = current(), focused = document.activeElement;
  document.title = made.title;
  change(document.getElementById("page"), page);
  if (row?.isConnected) row.classList.add("current");
  if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
  prepare();
}

// Reload the page when runs change. Pages that nobody sees do not follow: a browser has six connections to a server.
const RETRY_MILLISECONDS = 30000;
let events, known, retrying;
function follow() {
  const address = document.body.dataset.live;
  if (!address || document.hidden) return;
  events = new EventSource(known ? `${address.split("?")[0]}?known=${known}` : address);
  events.addEventListener("change", (event) => {
    known = event.lastEventId;
    load(location.href, { isLive: true });
  });
  events.addEventListener("error", () => {
    // Only after a refusal the browser does not call again by itself: the session has ended, or too many pages follow.
    if (events.readyState !== EventSource.CLOSED) return;
    load(location.href, { isLive: true });
    retrying = setTimeout(follow, RETRY_MILLISECONDS);
  });
}
function unfollow() {
  clearTimeout(retrying);
  events?.close();
}
document.addEventListener("visibilitychange", () => { unfollow(); follow(); });
addEventListener("pagehide", unfollow);
addEventListener("pageshow", (event) => { if (event.persisted) follow(); });

let typing;
function filter(event) {
  const form = event.target.closest("form[data-filter]");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(() => {
    const given = [...new FormData(form)].filter(([, value]) => value);
    const address = form.action.split(/[?#]/)[0] + (given.length ? `?${new URLSearchParams(given)}` : "");
    history.replaceState(null, "", address);
    load(address);
  }, event.type === "input" ? 300 : 0);
}
document.addEventListener("input", filter);
document.addEventListener("change", filter);

function prepare() {
  document.activeElement?.closest("[data-row]")?.classList.add("current");
  for (const button of document.querySelectorAll(".copy, .keys")) button.hidden = button.matches(".copy") && !navigator.clipboard;
}

prepare();
follow();
