// SPDX-License-Identifier: MIT
// Entries by filter. One request reads a bounded number of entries, so a search goes on by itself until it has found a
// screen full, and says how far it is.

const FILTERS = ["queue", "state", "topic", "key", "lane", "group", "parent", "error", "worker", "older_than", "newer_than"];
const STATE_CHOICES = ["", "live", "stuck", ...["pending", "retrying", "claimed", "succeeded", "dead"]];
const SCREEN = 50;
const HINTS = { older_than: "15m, 36h, 7d", newer_than: "15m, 36h, 7d", parent: "an id", error: "an error code", topic: "exactly" };

function filterField(name, query) {
  const id = "filter-" + name;
  return el("div", { class: "field" }, el("label", { for: id }, name.replace("_", " ")),
    el("input", { id, name, value: query[name] || "", placeholder: HINTS[name] || "any", autocomplete: "off" }));
}

function queueField(queues, query) {
  const select = el("select", { id: "filter-queue", name: "queue" }, el("option", { value: "" }, "all queues"),
    queues.map((q) => el("option", { value: q, selected: q === query.queue }, shown(q, 60))));
  if (query.queue && !queues.includes(query.queue)) select.append(el("option", { value: query.queue, selected: true }, shown(query.queue, 60)));
  return el("div", { class: "field" }, el("label", { for: "filter-queue" }, "queue"), select);
}

function filterForm(view, query, queues) {
  const more = ["key", "lane", "group", "parent", "worker", "older_than", "newer_than"];
  const form = el("form", { class: "filters", role: "search" },
    view === "entries" ? el("div", { class: "chips", role: "group", "aria-label": "State" },
      STATE_CHOICES.map((s) => el("a", { class: "chip" + ((query.state || "") === s ? " on" : ""), "data-state": s || "all",
        "aria-current": (query.state || "") === s ? "true" : undefined, href: link(view, { ...query, state: s }) }, s || "all"))) : "",
    el("div", { class: "fields" }, queueField(queues, query), filterField("topic", query), filterField("error", query),
      el("button", { type: "submit", class: "primary" }, "Search"),
      FILTERS.some((f) => query[f]) ? el("a", { class: "button quiet", href: link(view, {}) }, "Clear") : ""),
    el("details", { open: more.some((f) => query[f]) }, el("summary", {}, "More filters"),
      el("div", { class: "fields" }, more.map((f) => filterField(f, query)))));
  const go = () => {
    const wanted = Object.fromEntries([...new FormData(form)].map(([k, v]) => [k, String(v).trim()]).filter(([, v]) => v));
    location.hash = link(view, { ...wanted, state: query.state || "" });
  };
  form.addEventListener("submit", (e) => { e.preventDefault(); go(); });
  form.querySelector("select").addEventListener("change", go);
  return form;
}

function entryRow(e, now) {
  return el("tr", { on: { click: (event) => { if (!event.target.closest("a")) location.hash = link("entry/" + e.id); } } },
    el("td", { "data-label": "state" }, badge(stateOf(e)), e.is_saga ? el("span", { class: "tag" }, "saga") : ""),
    el("td", { "data-label": "entry" }, el("a", { class: "topic", href: link("entry/" + e.id) }, shown(e.topic, 60)),
      el("div", { class: "sub" }, shown(e.queue, 40) + " · ", el("code", {}, shortId(e.id)))),
    el("td", { "data-label": "why", class: "why" }, shown(e.why.sentence, 300)),
    el("td", { "data-label": "attempts", class: "number" }, e.attempts + (e.attempts_max ? " / " + e.attempts_max : "")),
    el("td", { "data-label": "error" }, e.last_error ? el("code", { class: "error" }, shown(e.last_error, 60)) : ""),
    el("td", { "data-label": "age", class: "number" }, time(e.created_at, now)));
}

function entryTable() {
  const body = el("tbody", {});
  const head = ["State", "Entry", "Why it is not running", "Attempts", "Last error", "Age"];
  return { body, table: el("div", { class: "table" }, el("table", {},
    el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col" }, h)))), body)) };
}

// Reads on until `screen` entries are found, the end is reached, or `isOver` says to stop.
async function search(query, from, screen, onProgress, isOver) {
  const out = { entries: [], next: from, read: 0, now: Date.now() };
  do {
    const page = await get("api/entries", { ...query, cursor: out.next || "", limit: screen - out.entries.length });
    out.entries.push(...page.entries);
    out.read += page.read;
    out.next = page.next;
    out.now = page.now;
    onProgress(out);
  } while (out.next && out.entries.length < screen && !isOver());
  return out;
}

// The list below a filter; the view of dead letters uses it too.
async function renderList(main, view, title, query, wanted, head) {
  const run = currentRun();
  const queues = (await get("api/overview")).queues.map((q) => q.queue);
  if (run.isOver()) return;
  const { body, table } = entryTable();
  const status = el("p", { class: "status", role: "status" }, "Searching …");
  const more = el("button", { type: "button", class: "quiet", hidden: undefined }, "Show more");
  const stop = el("button", { type: "button", class: "quiet" }, "Stop the search");
  more.hidden = true;
  main.replaceChildren(el("div", { class: "title" }, el("h1", {}, title), head || ""), filterForm(view, query, queues), table,
    el("div", { class: "list-foot" }, status, stop, more));
  let cursor = "";
  let total = 0;
  let read = 0;
  let isStopped = false;
  stop.addEventListener("click", () => { isStopped = true; });
  const next = async () => {
    isStopped = false;
    more.hidden = true;
    stop.hidden = false;
    let shownHere = 0;
    const found = await search(wanted, cursor, SCREEN, (soFar) => {
      for (const e of soFar.entries.slice(shownHere)) body.append(entryRow(e, soFar.now));
      shownHere = soFar.entries.length;
      status.textContent = count(total + shownHere) + " found, " + count(read + soFar.read) + " read …";
    }, () => isStopped || run.isOver());
    if (run.isOver()) return;
    cursor = found.next;
    total += found.entries.length;
    read += found.read;
    stop.hidden = true;
    more.hidden = !cursor;
    more.textContent = isStopped ? "Search on" : "Show more";
    status.textContent = total === 0 && !cursor ? "No entry matches; " + count(read) + " read." :
      count(total) + (total === 1 ? " entry" : " entries") + (cursor ? " so far" : "") + ", oldest first; " + count(read) + " read.";
  };
  more.addEventListener("click", () => next().catch((e) => toast(e.message, true)));
  await next();
}

const listView = {
  async render(main, query) {
    await renderList(main, "entries", query.state === "stuck" ? "Stuck entries" : "Entries", query, query);
  },
};
