// SPDX-License-Identifier: MIT
// Builds the page from elements and text nodes. Stored text is only ever the text of a node or the value of an
// attribute that is not code, so markup in it stays text.

const SVG = "http://www.w3.org/2000/svg";
const SAFE_ATTRIBUTES = /^(aria-[a-z]+|data-[a-z]+|role|title|type|name|value|placeholder|for|id|tabindex|colspan|scope|viewBox|d|x|y|x1|x2|y1|y2|cx|cy|r|rx|width|height|points|transform|download|autocomplete|list|text-anchor|preserveAspectRatio|open|disabled|selected|checked|autofocus)$/;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.setAttribute("class", value);
    else if (name === "on") for (const [type, f] of Object.entries(value)) node.addEventListener(type, f);
    else if (name === "href" && /^(#\/|api\/|#main$)/.test(value)) node.setAttribute("href", value);
    else if (SAFE_ATTRIBUTES.test(name)) node.setAttribute(name, value === true ? "" : String(value));
    else throw new Error("attribute " + name);
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);

// Characters that cannot be seen, or that change the direction of what follows, would let a name look like another one.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]/g;
const escapeHidden = (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0");
function shown(text, most = 120) {
  const cut = text.length > most ? text.slice(0, most) + "…" : text;
  return cut.replace(HIDDEN, escapeHidden);
}

const shortId = (id) => id.slice(0, 8) + "…" + id.slice(-4);
const count = (n) => Number(n).toLocaleString("en-US");
function compact(n) {
  if (n < 10000) return count(n);
  return n < 1e6 ? (n / 1e3).toFixed(n < 1e5 ? 1 : 0) + " k" : (n / 1e6).toFixed(2) + " M";
}

function span(ms) {
  const s = Math.abs(ms) / 1000;
  if (s < 1) return "under 1 s";
  if (s < 120) return Math.floor(s) + " s";
  if (s < 7200) return Math.floor(s / 60) + " min";
  if (s < 172800) return Math.floor(s / 3600) + " h";
  return s < 8.64e10 ? Math.floor(s / 86400) + " days" : "very long";
}
const ago = (at, now) => (Math.abs(at - now) < 1000 ? "just now" : at > now ? "in " + span(at - now) : span(now - at) + " ago");
function utc(at) {
  const date = new Date(at);
  return isNaN(date) ? (at > 0 ? "never" : "always") : date.toISOString().replace("T", " ");
}
const time = (at, now) => el("span", { title: utc(at), class: "time" }, ago(at, now));

const badge = (state) => el("span", { class: "badge " + (/^[a-z]+$/.test(state) ? state : "") }, state);
const stateOf = (e) => (e.is_compensated ? "compensated" : e.state);

let toastTimer = 0;
function toast(text, isBad) {
  const box = byId("toast");
  box.textContent = text;
  box.className = "toast shown" + (isBad ? " bad" : "");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { box.className = "toast"; }, 6000);
}

// Opens the dialog; `build(close)` returns what is in it. Resolves with what `close` is called with.
function ask(title, build) {
  return new Promise((resolve) => {
    const dialog = byId("dialog");
    let answer;
    const close = (value) => { answer = value; dialog.close(); };
    dialog.replaceChildren(el("h2", { id: "dialog-title" }, title), ...[build(close)].flat());
    dialog.addEventListener("close", () => resolve(answer), { once: true });
    dialog.showModal();
  });
}
async function confirmed(title, text, verb, isDanger) {
  return await ask(title, (close) => [
    el("p", {}, text),
    el("div", { class: "buttons" },
      el("button", { type: "button", class: "quiet", on: { click: () => close(false) } }, "Cancel"),
      el("button", { type: "button", class: isDanger ? "danger" : "primary", on: { click: () => close(true) } }, verb))]);
}
