// SPDX-License-Identifier: MIT
// The first view: what needs a person, then every queue.

function problemsOf(queue, data) {
  const out = [];
  if (!queue.counts) return out;
  const late = queue.next_due !== null && queue.next_due !== undefined ? data.now - queue.next_due : 0;
  if (late > data.stuck_after * 1000) {
    out.push({ text: "overdue " + span(late), href: link("entries", { state: "stuck", queue: queue.queue }) });
  }
  if (queue.stuck > 0) {
    out.push({ text: count(queue.stuck) + " stuck", href: link("entries", { state: "stuck", queue: queue.queue }) });
  }
  if (queue.counts.dead > 0) {
    out.push({ text: count(queue.counts.dead) + (queue.counts.dead === 1 ? " dead letter" : " dead letters"),
      href: link("dead", { queue: queue.queue }) });
  }
  return out;
}

function tile(title, value, note, href, isBad) {
  return el(href ? "a" : "div", { class: "tile" + (isBad ? " bad" : ""), href },
    el("span", { class: "label" }, title), el("strong", {}, value), el("span", { class: "note" }, note));
}

function tiles(data) {
  const counted = data.queues.filter((q) => q.counts);
  const sum = (f) => counted.reduce((total, q) => total + f(q), 0);
  const late = counted.map((q) => [q.next_due !== null ? data.now - q.next_due : 0, q.queue]).sort((a, b) => b[0] - a[0])[0];
  const rate = sum((q) => (q.history.length ? q.history[q.history.length - 1].ended_per_second || 0 : 0));
  const isLate = Boolean(late) && late[0] > data.stuck_after * 1000;
  const dead = sum((q) => q.counts.dead);
  return el("section", { class: "tiles", "aria-label": "Summary" },
    tile("Live entries", compact(sum((q) => q.counts.pending + q.counts.retrying + q.counts.claimed)),
      compact(sum((q) => q.counts.claimed)) + " claimed", link("entries", { state: "live" })),
    tile("Ended per second", rate < 10 ? rate.toFixed(1) : compact(Math.round(rate)), "since the look before"),
    tile("Most overdue", late && late[0] > 0 ? span(late[0]) : "none", late && late[0] > 0 ? "queue " + shown(late[1], 30) : "all on time",
      late && late[0] > 0 ? link("entries", { state: "stuck" }) : undefined, isLate),
    tile("Dead letters", compact(dead), dead ? "need a decision" : "none", link("dead", {}), dead > 0));
}

function queueCard(q, data) {
  const title = el("h3", {}, el("a", { href: link("entries", { queue: q.queue, state: "live" }) }, shown(q.queue, 60)));
  if (!q.counts) return el("article", { class: "queue" }, el("div", { class: "queue-head" }, title, el("span", { class: "note" }, "counting …")));
  const last = q.history[q.history.length - 1];
  const live = q.counts.pending + q.counts.retrying + q.counts.claimed;
  const overdue = q.next_due !== null ? Math.max(data.now - q.next_due, 0) : 0;
  const rate = last.ended_per_second;
  const problems = problemsOf(q, data);
  return el("article", { class: "queue" + (problems.length ? " attention" : "") },
    el("div", { class: "queue-head" }, title,
      problems.map((p) => el("a", { class: "problem", href: p.href }, p.text)),
      el("span", { class: "note" }, "counted " + ago(q.counted_at, data.now))),
    el("div", { class: "metrics" },
      metric("Depth", compact(live), sparkline(q.history.map((h) => h.live), "Live entries of queue " + q.queue, "depth")),
      metric("Ended / s", rate === null ? "–" : rate < 10 ? rate.toFixed(1) : compact(Math.round(rate)),
        sparkline(q.history.map((h) => h.ended_per_second), "Entries of queue " + q.queue + " that ended per second", "rate")),
      metric("Oldest waiting", overdue > 0 ? span(overdue) : "none due",
        sparkline(q.history.map((h) => h.overdue), "Seconds that the next entry of queue " + q.queue + " is overdue", "overdue"),
        overdue > data.stuck_after * 1000)),
    stateBar(q.counts),
    el("ul", { class: "states" }, STATES.map((s) => el("li", {},
      el("a", { href: s === "dead" ? link("dead", { queue: q.queue }) : link("entries", { queue: q.queue, state: s }) },
        el("i", { class: "dot " + s }), s + " ", el("b", {}, count(q.counts[s])))))));
}

const overviewView = {
  every: 2000,
  async render(main) {
    const run = currentRun();
    const data = await get("api/overview");
    if (run.isOver()) return; // the person has gone on meanwhile
    isReadOnly = data.read_only;
    byId("store").textContent = shown(data.name, 60);
    refreshLock();
    const attention = data.queues.filter((q) => problemsOf(q, data).length);
    const rest = data.queues.filter((q) => !problemsOf(q, data).length);
    main.replaceChildren(
      el("div", { class: "title" }, el("h1", {}, "Overview"),
        el("a", { class: "button primary", id: "find-stuck", href: link("entries", { state: "stuck" }) }, "Find stuck entries")),
      tiles(data),
      data.queues.length === 0 ? el("p", { class: "empty" }, "The store has no entries yet.") : "",
      attention.length ? el("h2", {}, "Needs attention") : "",
      attention.map((q) => queueCard(q, data)).reduce((box, card) => (box.append(card), box), el("div", { class: "queues" })),
      rest.length && attention.length ? el("h2", {}, "Running well") : "",
      rest.map((q) => queueCard(q, data)).reduce((box, card) => (box.append(card), box), el("div", { class: "queues" })));
  },
};
