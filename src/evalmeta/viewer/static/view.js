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
  if (!next) return;
  choose(next);
  preview(next.dataset.preview);
}

// Show the preview of a row beside the list.
function preview(address) {
  if (!address) return;
  history.replaceState(null, "", address);
  load(address);
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
  // What a page does with a key is on the page.
  const own = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!own && !(event.key in KEYS)) return;
  event.preventDefault();
  if (own) own.click();
  else KEYS[event.key]();
});

// The arrow keys go through the squares of a grid; the Tab key leaves out those that passed.
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
document.addEventListener("keydown", (event) => {
  const [down, right] = ARROWS[event.key] ?? [];
  const cell = event.target.closest?.(".grid :is(td, th)");
  if (!cell || down === undefined) return;
  const { rows } = cell.closest("table");
  let [row, column] = [cell.parentElement.rowIndex + down, cell.cellIndex + right];
  for (; rows[row]?.cells[column]; row += down, column += right) {
    const link = rows[row].cells[column].querySelector("a");
    if (!link) continue;
    event.preventDefault();
    link.focus();
    return;
  }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (button?.matches(".keys")) KEYS["?"]();
  if (button?.matches(".theme")) showTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]);
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

// The theme, which stays as it was chosen; at first it is that of the system.
const THEMES = ["system", "light", "dark"];
let theme = "system";
function showTheme(chosen) {
  theme = THEMES.includes(chosen) ? chosen : "system";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // The browser keeps nothing for this page.
  }
  prepare();
}
function keptTheme() {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null;
  }
}

// Times say how long ago they were, or the local time; the exact one is shown on hover.
const UNITS = [["second", 60], ["minute", 60], ["hour", 24], ["day", 7]];
const AGO = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
function showTime(element) {
  const moment = new Date(element.dateTime);
  let past = (Date.now() - moment) / 1000, text = moment.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  for (const [unit, most] of UNITS) {
    if (past >= 0 && past < most) {
      text = AGO.format(-Math.floor(past), unit);
      break;
    }
    past /= most;
  }
  element.title = `${moment.toLocaleString()} (${element.textContent})`;
  element.textContent = text;
}

// After Back, the link that led away has the focus again.
document.addEventListener("click", (event) => {
  const link = event.target.closest("#page a[href]");
  if (link) history.replaceState({ ...history.state, link: link.getAttribute("href") }, "");
});
function focusLink() {
  const link = history.state?.link;
  if (link) document.querySelector(`#page a[href="${CSS.escape(link)}"]`)?.focus({ preventScroll: true });
}

function prepare() {
  document.activeElement?.closest("[data-row]")?.classList.add("current");
  for (const button of document.querySelectorAll(".copy, .keys, .theme")) button.hidden = button.matches(".copy") && !navigator.clipboard;
  for (const button of document.querySelectorAll(".theme")) button.textContent = `Theme: ${theme}`;
  for (const element of document.querySelectorAll("time[datetime]:not([title])")) showTime(element);
}

focusLink();
showTheme(keptTheme());
follow();
