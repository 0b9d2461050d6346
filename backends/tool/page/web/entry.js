// SPDX-License-Identifier: MIT
// One entry: why it is not running first, then what can be done, then everything that is known.

function fact(name, value, wide) {
  if (value === null || value === undefined || value === "") return "";
  return el("div", { class: "fact" + (wide ? " wide" : "") }, el("dt", {}, name), el("dd", {}, value));
}
const idLink = (id) => (id ? el("a", { href: link("entry/" + id) }, el("code", {}, id)) : "");
const at = (when, now) => (when === null ? "" : [utc(when), " ", el("span", { class: "note" }, ago(when, now))]);

async function act(e, verb, title, text, isDanger) {
  if (!(await confirmed(title, text, title, isDanger))) return;
  const answer = await change("api/entries/" + e.id + "/" + verb);
  if (!answer) return;
  toast(answer.done);
  if (answer.successor) location.hash = link("entry/" + answer.successor);
  else redraw();
}

function entryButtons(e) {
  if (isReadOnly) return "";
  const button = (label, name, f) => el("button", { type: "button", class: name, on: { click: f } }, label);
  const isLive = e.state !== "succeeded" && e.state !== "dead";
  return el("div", { class: "buttons" },
    isLive ? button("Run now", "primary", () => act(e, "retry", "Run now", "Make this entry due now?")) : "",
    isLive ? button(e.is_saga ? "Ask to compensate" : "Cancel entry", "danger-quiet", () => act(e, "cancel",
      e.is_saga ? "Ask to compensate" : "Cancel entry",
      e.is_saga ? "The saga undoes its steps in reverse. This cannot be taken back." : "The entry ends as dead.", true)) : "",
    e.state === "dead" && !e.parent ? button(e.is_saga ? "Resume" : "Requeue", "primary", () => act(e, "requeue",
      e.is_saga ? "Resume" : "Requeue",
      e.is_saga ? "A successor continues the saga where it stopped." : "A successor starts from the beginning, due now.")) : "");
}

async function download(e) {
  try {
    const answer = await fetch("api/entries/" + e.id + "/payload", { headers: token() ? { Authorization: "Bearer " + token() } : {} });
    if (!answer.ok) throw new Error("The payload could not be read.");
    const address = URL.createObjectURL(await answer.blob());
    const a = el("a", { download: e.id + ".bin" });
    a.href = address;
    a.click();
    URL.revokeObjectURL(address);
  } catch (error) {
    toast(error.message, true);
  }
}

function facts(e) {
  const now = e.now;
  return el("section", { class: "panel" }, el("div", { class: "panel-head" }, el("h2", {}, "Details")),
    el("dl", { class: "facts" },
      fact("id", el("code", {}, e.id), true),
      fact("queue", el("a", { href: link("entries", { queue: e.queue, state: "live" }) }, shown(e.queue, 255))),
      fact("topic", shown(e.topic, 255)),
      fact("attempts", e.attempts + (e.attempts_max ? " of " + e.attempts_max : "") + ", " + e.failures + " failed, " + e.epoch + " claims ever" +
        (e.lapses ? ", " + e.lapses + " leases lapsed" : "")),
      fact("last error", e.last_error ? el("a", { href: link("entries", { error: e.last_error, queue: e.queue }) }, shown(e.last_error)) : ""),
      fact("worker", e.worker ? el("a", { href: link("entries", { worker: e.worker, queue: e.queue, state: "claimed" }) }, shown(e.worker, 255)) : ""),
      fact("key", shown(e.key, 255)),
      fact("lane", e.lane ? el("a", { href: link("entries", { lane: e.lane, queue: e.queue, state: "live" }) }, shown(e.lane, 255)) : ""),
      fact("group", e.group ? el("a", { href: link("entries", { group: e.group }) }, shown(e.group, 255)) : ""),
      fact("parent", idLink(e.parent), true), fact("replaces", idLink(e.predecessor), true),
      fact("enqueued", at(e.created_at, now)), fact("due", at(e.due_at, now)), fact("lease until", at(e.lease_until, now)),
      fact("last attempt", at(e.last_attempt_at, now)), fact("changed", at(e.updated_at, now)), fact("expires", at(e.expires_at, now)),
      fact("sequence", e.sequence + ", generation " + e.generation)));
}

function whyPanel(e) {
  return el("section", { class: "why-panel " + (/^[a-z_]+$/.test(e.why.code) ? e.why.code : ""), "aria-label": "Why it is not running" },
    el("p", { id: "why" }, shown(e.why.sentence, 2000)),
    e.why.entries.length ? el("p", { class: "note" }, "See ", e.why.entries.map((id, i) => [i ? ", " : "", idLink(id)])) : "");
}

function relations(e) {
  const trail = e.trail.length ? el("section", { class: "panel" }, el("div", { class: "panel-head" }, el("h2", {}, "Trail"),
    el("span", { class: "note" }, "the emissions that led here, oldest first")),
    el("ol", { class: "trail" }, e.trail.map((id) => el("li", {}, el("code", {}, id))))) : "";
  const headers = e.headers.length ? el("section", { class: "panel" }, el("div", { class: "panel-head" }, el("h2", {}, "Headers")),
    el("dl", { class: "facts" }, e.headers.map((h) => fact(shown(h.name, 255), shown(h.value, 4096) || "(empty)", true)))) : "";
  if (!e.children.length) return [headers, trail];
  const rows = e.children.map((c) => el("tr", {}, el("td", { "data-label": "state" }, badge(stateOf(c))),
    el("td", { "data-label": "command" }, el("a", { href: link("entry/" + c.id) }, shown(c.topic, 60))),
    el("td", { "data-label": "queue" }, shown(c.queue, 60)),
    el("td", { "data-label": "error" }, c.last_error ? el("code", { class: "error" }, shown(c.last_error)) : ""),
    el("td", { "data-label": "changed", class: "number" }, time(c.updated_at, e.now))));
  return [el("section", { class: "panel" }, el("div", { class: "panel-head" }, el("h2", {}, "Its commands and children")),
    el("div", { class: "table flat" }, el("table", {}, el("tbody", {}, rows)))), headers, trail];
}

const entryView = {
  every: 4000,
  async render(main, query, id) {
    const run = currentRun();
    const e = await get("api/entries/" + encodeURIComponent(id));
    if (run.isOver()) return;
    const scroll = [...main.querySelectorAll("[role=tab][aria-selected=true]")].map((t) => [t.closest("section").id, t.dataset.form]);
    main.replaceChildren(
      el("div", { class: "title" }, el("div", {}, el("h1", { class: "entry-title" }, shown(e.topic, 80)), badge(stateOf(e))), entryButtons(e)),
      whyPanel(e), e.saga ? sagaPicture(e.saga, e) : "",
      el("div", { class: "columns" }, el("div", {}, facts(e)),
        el("div", {}, e.payload ? bytesPanel("Payload", "payload", e.payload, () => download(e)) : "",
          e.result ? bytesPanel("Result", "result", e.result) : "",
          e.progress ? bytesPanel("Progress", "progress", e.progress) : "", relations(e))));
    for (const [section, form] of scroll) { // a redraw keeps the chosen forms
      const tab = main.querySelector(`#${section} [data-form=${form}]`);
      if (tab && !tab.disabled) tab.click();
    }
  },
};
