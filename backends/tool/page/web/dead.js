// SPDX-License-Identifier: MIT
// Dead letters, and their requeue by filter: first everything is counted, then a person confirms, then they are requeued
// in small commits, and none that was not counted.

async function requeueMatching(query) {
  if (!token() && !(await unlock())) return;
  refreshLock();
  const form = Object.fromEntries(Object.entries(query).filter(([, value]) => value));
  let isStopped = false;
  const text = el("p", { role: "status", id: "requeue-status" }, "Counting …");
  const bar = el("div", { class: "progress" }, el("i", {}));
  const go = el("button", { type: "button", class: "primary", id: "requeue-go", disabled: true }, "Requeue");
  const close = el("button", { type: "button", class: "quiet", id: "requeue-close" }, "Cancel");
  const shape = Object.entries(form).filter(([name]) => name !== "state").map(([name, value]) => name.replace("_", " ") + " " + shown(value, 60));
  const walk = async (extra, onPage) => {
    let cursor = "";
    do {
      const page = await change("api/requeue", { ...form, ...extra, cursor });
      if (!page) throw new Error("stopped");
      onPage(page);
      cursor = page.next;
    } while (cursor && !isStopped);
  };
  const work = async () => {
    let matched = 0;
    let commands = 0;
    let last = 0n;
    await walk({ dry_run: "1" }, (page) => {
      matched += page.matched;
      commands += page.commands;
      if (BigInt(page.last) > last) last = BigInt(page.last);
      text.textContent = "Counting … " + count(matched);
    });
    if (isStopped) return;
    const able = matched - commands;
    text.textContent = matched === 0 ? "No dead entry matches." : count(able) + (able === 1 ? " entry gets" : " entries get") +
      " a successor that runs now; sagas are resumed." + (commands ? " " + count(commands) + " commands of sagas are left alone." : "");
    if (able === 0) return;
    go.textContent = "Requeue " + count(able);
    go.disabled = false;
    await new Promise((resolve) => go.addEventListener("click", resolve, { once: true }));
    go.disabled = true;
    close.textContent = "Stop";
    let done = 0;
    let before = 0;
    let seen = 0;
    await walk({ until: String(last) }, (page) => {
      done += page.requeued;
      before += page.had_a_successor;
      seen += page.matched;
      bar.firstChild.style.width = Math.min(100, (100 * seen) / matched) + "%";
      text.textContent = count(done) + " of " + count(able) + " requeued …";
    });
    text.textContent = count(done) + " requeued" + (before ? ", " + count(before) + " had a successor already" : "") + (isStopped ? "; stopped." : ".");
    close.textContent = "Close";
    go.hidden = true;
  };
  const over = ask("Requeue dead letters", (end) => {
    close.addEventListener("click", () => { isStopped = true; end(); });
    return [el("p", { class: "note" }, shape.length ? "Those with " + shape.join(", ") : "Those of all queues"), text, bar,
      el("div", { class: "buttons" }, close, go)];
  });
  work().catch((e) => { text.textContent = e.message === "stopped" ? "Nothing more was requeued." : e.message; });
  await over;
  isStopped = true;
  redraw();
}

const deadView = {
  async render(main, query) {
    const wanted = { ...query, state: "dead" };
    const head = isReadOnly ? "" : el("button", { type: "button", class: "primary", id: "requeue-all",
      on: { click: () => requeueMatching(wanted) } }, "Requeue matching …");
    await renderList(main, "dead", "Dead letters", query, wanted, head);
  },
};
