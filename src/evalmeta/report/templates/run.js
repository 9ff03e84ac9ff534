"use strict";
for (const run of document.querySelectorAll(".run")) {
  const [find, toggle, cases] = [run.querySelector("[type=search]"), run.querySelector("button"), [...run.querySelectorAll(".case")]];
  const texts = cases.map((each) => each.querySelector(".utterance").textContent.toLowerCase());
  const visible = () => cases.filter((each) => each.getClientRects().length);
  const refresh = () => { run.querySelector(".nothing").style.display = !cases.length || visible().length ? "" : "block"; };
  find.hidden = toggle.hidden = cases.length === 0;
  find.addEventListener("input", () => {
    const wanted = find.value.toLowerCase();
    cases.forEach((each, at) => { each.hidden = !texts[at].includes(wanted); });
    refresh();
  });
  run.querySelector(".filter").addEventListener("change", refresh);
  toggle.addEventListener("click", () => {
    const open = toggle.textContent === "open all";
    for (const each of visible()) each.open = open;
    toggle.textContent = open ? "close all" : "open all";
  });
}
