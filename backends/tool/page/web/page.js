// SPDX-License-Identifier: MIT
// Chooses the view by what is behind the `#`, and draws it again while the page is visible.

const VIEWS = { overview: overviewView, entries: listView, dead: deadView, entry: entryView };

function link(view, query) {
  const given = Object.entries(query || {}).filter(([, value]) => value);
  return "#/" + view + (given.length ? "?" + new URLSearchParams(given) : "");
}

function whereTo() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, id] = path.split("/");
  const view = name === "entry" && id ? "entry" : VIEWS[name] && name !== "entry" ? name : "overview";
  return { view, id, query: Object.fromEntries(new URLSearchParams(query || "")) };
}

// A run is one drawing of one address; when another begins, what the first still reads is thrown away.
let runs = 0;
let timer = 0;
let lastGood = 0;
function currentRun() {
  const mine = runs;
  return { isOver: () => mine !== runs };
}

function showLive(error) {
  const live = byId("live");
  live.className = "live" + (error ? " bad" : "");
  live.textContent = error ? error : "live";
  live.title = lastGood ? "last answer at " + utc(lastGood) : "";
}

async function draw(isNew) {
  clearTimeout(timer);
  runs += 1;
  const run = currentRun();
  const to = whereTo();
  const view = VIEWS[to.view];
  const main = byId("main");
  for (const a of document.querySelectorAll("nav a")) {
    if (a.dataset.view === to.view) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  if (isNew) main.classList.add("loading");
  try {
    // Drawn aside first, so that a slow answer leaves the old content, and the focus stays where it is.
    const focus = document.activeElement && document.activeElement.id;
    if (isNew) await view.render(main, to.query, to.id);
    else {
      const y = scrollY;
      await view.render(main, to.query, to.id);
      if (run.isOver()) return;
      scrollTo(0, y);
      if (focus && byId(focus) && document.activeElement === document.body) byId(focus).focus();
    }
    if (run.isOver()) return;
    lastGood = Date.now();
    showLive("");
  } catch (e) {
    if (run.isOver()) return;
    if (e.status === 401) {
      main.replaceChildren(el("p", { class: "empty" }, "Reading needs the token. ",
        el("button", { type: "button", class: "primary", on: { click: async () => { if (await unlock()) redraw(); } } }, "Enter the token")));
    } else if (isNew) {
      main.replaceChildren(el("p", { class: "empty" }, e.message));
    }
    showLive(e.message);
  } finally {
    if (!run.isOver()) {
      main.classList.remove("loading");
      if (isNew) document.title = (main.querySelector("h1") || {}).textContent + " · vouch";
      if (view.every) timer = setTimeout(tick, view.every);
    }
  }
}

// To draw between the press and the release of a button would lose the click.
let isPressed = false;
addEventListener("pointerdown", () => { isPressed = true; }, true);
for (const type of ["pointerup", "pointercancel", "blur"]) addEventListener(type, () => { isPressed = false; }, true);

function tick() {
  const isBusy = isPressed || document.hidden || byId("dialog").open || String(getSelection());
  if (isBusy) timer = setTimeout(tick, 300);
  else draw(false);
}
const redraw = () => draw(true);

takeTokenFromAddress();
byId("lock").addEventListener("click", async () => {
  if (token()) sessionStorage.removeItem(TOKEN);
  else await unlock();
  refreshLock();
});
addEventListener("hashchange", () => { if (location.hash !== "#main") { scrollTo(0, 0); draw(true); } });
addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || byId("dialog").open) return;
  const to = { o: "", e: "entries", s: "entries?state=stuck", d: "dead" }[e.key];
  if (to !== undefined) location.hash = "#/" + to;
});
(async () => {
  try {
    const about = await get("api/overview");
    isReadOnly = about.read_only;
    byId("store").textContent = shown(about.name, 60);
  } catch (e) { /* the view says it */ }
  refreshLock();
  draw(true);
})();
