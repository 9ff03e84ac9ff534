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

// What is open and focused stays so.
const load = (address) => htmx.ajax("GET", address, { target: "#page", select: "#page", swap: "outerMorph" });

function follow() {
  const address = document.body.dataset.live;
  if (!address) return;
  const events = new EventSource(address);
  events.addEventListener("change", () => load(location.href));
  addEventListener("pagehide", () => events.close());
}

let typing;
function filter(event) {
  const form = event.target.closest("form[data-filter]");
  if (!form || !window.htmx) return;
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

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const utc = (time) => new Date(1000 * time).toISOString().slice(0, 19).replace("T", " ");
const shortTime = (time, step) => (step < 60 ? utc(time).slice(11) : step < 86400 ? utc(time).slice(5, 16) : utc(time).slice(0, 10));

// A chart with a cursor instead of the plain one; the values are the same.
function draw(figure) {
  const { times, series, deploys, most, unit } = JSON.parse(figure.dataset.chart);
  const lines = Object.entries(series);
  const axis = { stroke: colour("dim"), grid: { stroke: colour("line") }, ticks: { stroke: colour("line") } };
  const value = (_, found) => (found == null ? "-" : `${+found.toFixed(1)} ${unit}`);
  const chart = new uPlot({
    width: figure.clientWidth - 42,
    height: 200,
    scales: { y: { range: [0, most] } },
    axes: [{ ...axis, space: 90, values: (_, found, __, ___, step) => found.map((each) => shortTime(each, step)) }, { ...axis, size: 76, values: (_, found) => found.map((each) => `${each.toLocaleString("en")} ${unit}`) }],
    series: [{ value: (_, found) => (found == null ? "-" : `${utc(found)} UTC`) }, ...lines.map(([label], at) => ({ label, value, stroke: colour(at ? "error" : "focus"), width: 2, points: { size: 6 }, spanGaps: true }))],
    hooks: {
      draw: [(plot) => {
        plot.ctx.strokeStyle = colour("undecided");
        for (const each of deploys) {
          const x = plot.valToPos(each, "x", true);
          plot.ctx.beginPath();
          plot.ctx.moveTo(x, plot.bbox.top);
          plot.ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
          plot.ctx.stroke();
        }
      }],
    },
  }, [times, ...lines.map(([, values]) => values)], figure);
  addEventListener("resize", () => chart.setSize({ width: figure.clientWidth - 42, height: 200 }));
}

function prepare() {
  document.activeElement?.closest("[data-row]")?.classList.add("current");
  for (const button of document.querySelectorAll(".copy, .keys")) button.hidden = button.matches(".copy") && !navigator.clipboard;
  if (window.uPlot) for (const each of document.querySelectorAll(".chart:not(:has(.uplot))")) draw(each);
}

prepare();
document.addEventListener("htmx:after:swap", prepare);
follow();
