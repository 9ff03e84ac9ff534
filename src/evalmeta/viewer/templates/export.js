// The pages of an export follow `#/` in the address. data.js has them as DATA: JSON, deflated, as base64. Texts of cases
// never become markup; the pages in it were drawn by evalmeta, which escapes all texts.
const content = document.getElementById("content");
const command = document.querySelector("#page > footer .command");
const FIRST = "#/changes";
const FOUND = 100; // The most results of a search that are listed.
const pages = new Map();
let runs = [], cases = [], words = {};

// Make an element; what is false or null is left out, and lists are flattened.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value || value === "") element.setAttribute(name, value);
  element.append(...children.flat(Infinity).filter((child) => child || child === 0));
  return element;
}
const pre = (text, look) => make("pre", { dir: "auto", class: look }, text);
const caption = (text) => make("div", { class: "caption" }, text);
const pill = (verdict) => make("span", { class: `pill ${verdict.toLowerCase()}` }, words[verdict] ?? verdict);
const facts = (texts = []) => texts.length && make("p", { class: "facts" }, texts.map((text) => make("span", {}, text)));
const more = (title, ...children) => make("details", { class: "traceback" }, make("summary", {}, title), children);
const address = (page, values) => {
  const given = Object.entries(values).filter(([, value]) => value);
  return `#/${page}${given.length ? "?" : ""}${new URLSearchParams(given)}`;
};
const caseAddress = (known) =>
  address("case", { run: known.run.id, org: known.run.org, number: known.number, iteration: known.iteration });
const utterances = (known) => known.turns.map((turn) => turn.utterance ?? "").join(" / ");
function time(seconds) {
  const moment = new Date(seconds * 1000).toISOString();
  return make("time", { datetime: moment }, `${moment.slice(0, 19).replace("T", " ")} UTC`);
}

async function read() {
  const bytes = Uint8Array.from(atob(DATA), (char) => char.charCodeAt(0));
  const whole = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = JSON.parse(await new Response(whole).text());
  ({ runs, words } = data);
  for (const run of runs) run.cases = [];
  const worst = ["FAILURE", "ERROR", "UNDECIDED", "PASS"];
  cases = data.cases.sort((one, other) => worst.indexOf(one.verdict) - worst.indexOf(other.verdict));
  for (const known of cases) {
    known.run = runs[known.run];
    known.run.cases.push(known);
  }
  for (const [place, page] of Object.entries(data.pages)) pages.set(normal(place), page);
}

// What a search looks at in a case.
const texts = new Map();
function textOf(known) {
  if (!texts.has(known)) {
    texts.set(known, `${known.run.test} ${known.run.agent} ${JSON.stringify({ ...known, run: undefined })}`.toLowerCase());
  }
  return texts.get(known);
}

// Put the field that searches all cases into the head of the pages.
function addSearch() {
  const says = { "aria-label": "Search all cases", "aria-keyshortcuts": "/", placeholder: "Search all cases" };
  const input = make("input", { type: "search", ...says });
  const form = make("form", { class: "search", role: "search" }, input);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = address("search", { text: input.value.trim() });
  });
  document.querySelector("body > header nav").after(form);
}

// The page with the cases that have all words, the newest first; without the answers to suspect cases that were asked again.
function searchPage(given) {
  const text = given.get("text") ?? "", wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = cases.filter((known) => !known.run.isAgain && wanted.every((word) => textOf(known).includes(word)))
    .sort((one, other) => other.started - one.started);
  const number = `${found.length.toLocaleString("en")} case ${found.length === 1 ? "result" : "results"}`;
  const nodes = [
    make("h1", {}, "Search"),
    make("p", { class: "dim" }, wanted.length ? `${number} of all exported runs: ${text}` : "Write words into the field in the head of the page."),
    wanted.length > 0 && make("div", { id: "results" }, caseTable(found.slice(0, FOUND), ["Test", "Started"])),
    found.length > FOUND && wanted.length > 0 && make("p", { class: "dim" }, `The newest ${FOUND} are listed.`),
  ];
  return { title: "Search", section: "", nodes: nodes.filter(Boolean) };
}

// An address without what only chooses rows, as browsers write it.
function normal(place) {
  const [path, query] = place.split("?");
  const given = new URLSearchParams(query);
  given.delete("text");
  given.delete("verdict");
  return `${path}${given.size ? "?" : ""}${given}`;
}

// Show the page that the address names.
function show() {
  const place = location.hash || FIRST;
  // Other anchors are places on the same page.
  if (!place.startsWith("#/")) return;
  const given = new URLSearchParams(place.split("?")[1]);
  const made = { case: casePage, search: searchPage }[place.slice(2).split("?")[0]];
  const page = made ? made(given) : pages.get(normal(place));
  if (page?.html !== undefined) {
    content.replaceChildren(...new DOMParser().parseFromString(page.html, "text/html").body.childNodes);
  } else {
    content.replaceChildren(...(page?.nodes ?? missing()));
  }
  document.title = `${page?.title ?? "Not shown"} - evalmeta`;
  for (const link of document.querySelectorAll("header nav a")) {
    if (link.textContent.toLowerCase() === (page?.section ?? "")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  showCommand(page ?? {});
  for (const box of content.querySelectorAll("[data-cases]")) listCases(box, given);
  for (const box of content.querySelectorAll("[data-search]")) search(box, box.dataset.search, given);
  prepare();
  if (history.state?.link) focusLink();
  else {
    scrollTo(0, 0);
    content.focus({ preventScroll: true });
  }
}

function missing() {
  return [make("section", { class: "card narrow" }, make("h1", {}, "Not shown"), leftOut("This page is"))];
}

function showCommand(page) {
  command.hidden = !page.command;
  command.querySelector("span").textContent = `${page.commandTitle}:`;
  command.querySelector("code").textContent = command.querySelector("button").dataset.copy = page.command ?? "";
}

// Say that something is left out, and how to see it.
const leftOut = (what) =>
  make("p", { class: "dim" }, `${what} not in the export, to keep it small. `, make("code", {}, "evalmeta view"), " shows all.");

// Put a search into a box; it hides the rows below that do not contain the text. `textAt` returns the text of a row by its place.
function search(box, placeholder, given, textAt = (row) => row.textContent) {
  const input = make("input", { id: "text", type: "search", placeholder, value: given.get("text") });
  const rows = [...content.querySelectorAll("#results tbody tr")].map((row, at) => [row, textAt(row, at).toLowerCase()]);
  const filter = () => {
    for (const [row, text] of rows) row.hidden = !text.includes(input.value.trim().toLowerCase());
  };
  input.addEventListener("input", () => {
    const values = Object.fromEntries(new URLSearchParams(location.hash.split("?")[1]));
    history.replaceState(history.state, "", address(location.hash.slice(2).split("?")[0], { ...values, text: input.value }));
    filter();
  });
  box.append(make("div", { class: "filters" }, make("div", { class: "grow" }, make("label", { for: "text" }, "Search"), input)));
  filter();
}

// List the cases of runs, with the verdicts to choose from and a search.
function listCases(box, given) {
  const of = box.dataset.cases.trim().split(" ");
  const chosen = runs.filter((run) => of.includes(run.address));
  const known = chosen.flatMap((run) => run.cases);
  const left = chosen.reduce((total, run) => total + run.done, 0) - known.length;
  const wanted = given.get("verdict") ?? "";
  const here = location.hash.slice(2).split("?")[0], values = Object.fromEntries(given);
  const chip = (verdict, name, number) => make(
    "a",
    { href: address(here, { ...values, verdict }), "aria-current": wanted === verdict && "true" },
    name, " ", make("b", {}, number.toLocaleString("en")),
  );
  const numbers = ["FAILURE", "ERROR", "UNDECIDED", "PASS"]
    .map((verdict) => [verdict, known.filter((one) => one.verdict === verdict).length]);
  const chips = numbers.filter(([, number]) => number).map(([verdict, number]) => chip(verdict, words[verdict].toLowerCase(), number));
  const listed = known.filter((one) => !wanted || one.verdict === wanted);
  const searching = make("div", {});
  box.append(
    make("nav", { class: "chips", "aria-label": "Cases by verdict" }, chip("", "all", known.length), chips),
    searching,
    make("div", { id: "results" }, caseTable(listed, of.length > 1 ? ["Test"] : [])),
  );
  if (left > 0) box.append(leftOut(`${left.toLocaleString("en")} more case ${left === 1 ? "result is" : "results are"}`));
  search(searching, "Utterances, answers, expectations, reasons", given, (row, at) => (listed[at] ? textOf(listed[at]) : ""));
}

// A table of cases; `also` are columns that not all such tables have.
function caseTable(listed, also) {
  const titles = ["Result", "Case", ...also, "Utterance", "Why", "Latency"];
  const looks = { Case: "number", Latency: "number", Utterance: "wide", Why: "wide dim" };
  const cells = (known) => ({
    Result: [pill(known.state), known.quarantine && [" ", make("span", { class: "pill measured" }, "quarantine")]],
    Case: [
      make("a", { href: caseAddress(known) }, known.number),
      known.iteration && [" ", make("span", { class: "dim small" }, `iteration ${known.iteration}`)],
    ],
    Test: known.run.test,
    Started: time(known.started),
    Utterance: [
      make("bdi", {}, utterances(known).slice(0, 400) || "(no utterance)"),
      known.label && [" ", make("span", { class: "dim small" }, known.label)],
    ],
    Why: make("bdi", {}, known.why),
    Latency: known.latency,
  });
  const row = (known) => {
    const values = cells(known);
    return make("tr", { "data-row": "" }, titles.map((title, at) => make(
      "td", { class: looks[title], "data-label": at > 0 && !looks[title]?.startsWith("wide") && title }, values[title],
    )));
  };
  const head = titles.map((title) => make("th", { scope: "col", class: looks[title] === "number" && "number" }, title));
  const rows = listed.length ? listed.map(row) : make("tr", {}, make("td", { colspan: titles.length }, "No case results."));
  return make("div", { class: "scroll" }, make(
    "table", { class: "rows stack" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows),
  ));
}

// The page of a case: the iteration that the address names, or else the worst one.
function casePage(given) {
  const run = runs.find((one) => one.id === given.get("run") && one.org === (given.get("org") ?? ""));
  const iterations = (run?.cases ?? []).filter((one) => String(one.number) === given.get("number"));
  const known = iterations.find((one) => String(one.iteration) === given.get("iteration")) ?? iterations[0];
  if (!known) return undefined;
  const at = run.cases.indexOf(known);
  const step = (rel, label, to) => to && make("a", { class: "button", rel, href: caseAddress(to) }, label);
  const failed = known.turns.flatMap((turn) => turn.results ?? []).find((result) => result.verdict === "FAILURE");
  const nodes = [
    make("p", { class: "crumbs" }, make("a", { href: "#/runs" }, "Runs"), " / ", make("a", { href: run.address }, run.test), ` / case ${known.number}`),
    make("nav", { class: "neighbours", "aria-label": "Cases of the run" },
      step("prev", "Previous case", run.cases[at - 1]), " ", step("next", "Next case", run.cases[at + 1])),
    make("section", { class: `card verdict ${known.verdict.toLowerCase()}`, "aria-label": "Result" },
      make("h1", {}, pill(known.state), ` Case ${known.number} `, known.label && make("small", {}, known.label)),
      known.change && make("p", { class: "first" }, make("span", { class: `pill ${known.change[0]}` }, known.change[1]), ` ${known.change[2]}`),
      known.why && make("p", { class: "first" }, make("bdi", {}, known.why)),
      failed && make("dl", { class: "facing" }, ["expected", "actual"].map((name, place) =>
        make("div", {}, make("dt", {}, name), make("dd", {}, make("bdi", {}, failed.texts[place].slice(0, 400))))))),
    make("p", { class: "dim" }, `${run.test} · agent ${run.agent} · `, time(known.started), ` · took ${known.took}`),
    past(known),
    iterations.length > 1 && make("nav", { class: "chips", "aria-label": "Iterations" }, iterations.map((one) =>
      make("a", { href: caseAddress(one), "aria-current": one === known && "true" }, pill(one.state), ` iteration ${one.iteration}`))),
    [known.quarantine, known.metadata && `Metadata: ${known.metadata}`].filter(Boolean).map((text) => make("p", {}, text)),
    known.error && make("p", { class: "problem", dir: "auto" }, known.error),
    known.traceback && more("traceback", pre(known.traceback)),
    facts(known.costs),
    known.turns.length === 1
      ? make("section", { class: "card turn", "aria-label": "turn 1" }, turnParts(known.turns[0]))
      : known.turns.map((turn, place) => turnCard(turn, place + 1)),
    known.more && leftOut(known.more),
    known.trace && make("details", { class: "card" }, make("summary", {}, "Trace of the agent"), pre(known.trace)),
  ];
  const title = `Case ${known.number} of ${run.test}`;
  return { title, section: "runs", command: `${run.again} ${known.number}`, commandTitle: "Run this case again", nodes: nodes.flat(Infinity).filter(Boolean) };
}

// The case in all exported runs of its test, the latest last.
function past(known) {
  const same = runs.filter((run) => run.test === known.run.test && run.org === known.run.org)
    .filter((run) => !run.isAgain || run === known.run)
    .sort((one, other) => one.started - other.started)
    .map((run) => run.cases.find((one) => one.number === known.number)).filter(Boolean);
  if (same.length < 2) return null;
  const square = (one) => {
    const changed = utterances(one) !== utterances(known);
    const says = `${words[one.verdict]}, ${new Date(one.started * 1000).toISOString().slice(0, 10)}, run ${one.run.id}${changed ? ", another utterance" : ""}`;
    return make("li", {}, make(
      "a",
      { class: `square ${one.verdict.toLowerCase()}${changed ? " changed" : ""}`, href: caseAddress(one), title: says, "aria-current": one.run === known.run && "true" },
      make("span", { class: "hidden" }, says),
      make("span", { "aria-hidden": "true" }, { PASS: "✓", FAILURE: "✗", ERROR: "!" }[one.verdict] ?? "?"),
    ));
  };
  return make("nav", { class: "squares", "aria-label": "This case in the exported runs" },
    make("span", { class: "dim small" }, "History, the latest last"), make("ol", {}, same.map(square)));
}

function turnCard(turn, number) {
  const title = make("h2", {}, turn.verdict && pill(turn.verdict), ` Turn ${number} `, make("small", {}, (turn.utterance ?? "").slice(0, 100)));
  return make("details", { class: "card turn-card", open: turn.verdict !== "PASS" && "open" },
    make("summary", {}, title), make("div", { class: "turn" }, turnParts(turn)));
}

function turnParts(turn) {
  const results = turn.results ?? [];
  const passed = results.filter((result) => result.verdict === "PASS"), others = results.filter((result) => result.verdict !== "PASS");
  return [
    caption("utterance"), pre(turn.utterance ?? "(no utterance)", "question"),
    turn.answer && [caption("answer"), pre(turn.answer, "answer")],
    facts(turn.facts),
    results.length > 0 && caption("expectations"),
    others.map(resultPart),
    turn.steps && [caption("calls and steps"), make("div", {}, turn.steps.map(stepPart))],
    (turn.notes ?? []).map((note) => make("p", { class: "dim small" }, note)),
    passed.length > 0 && make("details", { class: "passed", open: !others.length && "open" },
      make("summary", {}, `${passed.length} passed`), passed.map(resultPart)),
    turn.retrieved && more("retrieved passages", turn.retrieved.map(([uri, text]) => [caption(uri), text && pre(text)])),
    turn.state && more("state of the session", pre(turn.state)),
  ];
}

function pair(names, texts) {
  return make("div", { class: "pair" }, texts.map((text, at) => make("div", {}, caption(names[at]), pre(text))));
}

function resultPart(result) {
  return make("section", { class: `result ${result.verdict.toLowerCase()}` },
    make("h3", {}, pill(result.verdict), " ", make("b", {}, result.label), result.name && [" ", make("code", {}, result.name)],
      (result.facts ?? []).map((fact) => [" ", make("span", { class: "fact" }, fact)])),
    (result.why ?? []).map((why) => make("p", { class: "why", dir: "auto" }, why)),
    result.error && make("p", { class: "problem", dir: "auto" }, result.error),
    result.texts && pair(["expected", "actual"], result.texts),
    (result.marks ?? []).map((mark) => make("p", { class: "mark" }, mark)));
}

// A call or a step with its time; its input and output are folded.
function stepPart(step) {
  const lane = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  lane.setAttribute("class", "lane");
  lane.setAttribute("aria-hidden", "true");
  for (const [x, width] of step.bars ?? []) {
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({ class: step.kind, x, width, height: "100%" })) bar.setAttribute(name, value);
    lane.append(bar);
  }
  const said = step.kind === "missing" ? make("b", {}, "missing") : step.error ? make("b", {}, "failed")
    : !["tool", "rest"].includes(step.kind) && make("span", { class: "dim" }, step.kind);
  const row = [make("span", { class: `name level-${Math.min(step.level, 6)}` }, step.name, " ", said), lane, make("span", { class: "time" }, step.took)];
  if (!step.texts) return make("div", { class: `lane-row ${step.kind}` }, row);
  return make("details", { open: step.error && "open" },
    make("summary", { class: "lane-row" }, row),
    facts(step.facts), pair(["input", "output"], step.texts),
    step.error && make("p", { class: "problem", dir: "auto" }, step.error));
}

// Places on the page do not change the address, which names the page.
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]:not([href^="#/"])');
  const target = link && document.getElementById(link.hash.slice(1));
  if (!target) return;
  event.preventDefault();
  target.scrollIntoView();
  target.focus();
});

pages.set(FIRST, {
  title: document.title.replace(/ - evalmeta$/, ""),
  section: "changes",
  command: command.querySelector("code").textContent,
  commandTitle: command.querySelector("span").textContent.replace(/:$/, ""),
  html: content.innerHTML,
});
read().then(() => {
  addSearch();
  addEventListener("hashchange", show);
  if (location.hash) show();
}, () => {
  const hint = "The other pages cannot be shown: data.js must be beside this file, and the browser must be of 2023 or later.";
  content.prepend(make("p", { class: "alert", role: "alert" }, hint));
});
