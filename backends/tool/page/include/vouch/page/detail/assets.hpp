// SPDX-License-Identifier: MIT
// The page as text. Written by backends/tool/page/embed.py from the files in backends/tool/page/web; change those.
#pragma once

#include <string>
#include <string_view>

#include <vouch/version.hpp>

// clang-format off
namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

inline constexpr std::string_view script_hash = "sha256-aJalKEkETRi7A/FOXHS7Pcwxuz/oHn1D7Xn1p+tprI4=";
inline constexpr std::string_view style_hash = "sha256-oVQD44pqIjXfaF/2ZNu1wGTjZmMoJZA58IryiokqFaQ=";

[[nodiscard]] inline std::string document() {
    std::string out;
    out += R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>vouch</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E%3Crect width='24' height='24' rx='6' fill='%234653d3'/%3E%3Cpath d='M6 8l5 9 7-12' fill='none' stroke='white' stroke-width='3' stroke-linecap='round' stroke-linejoin='round'/%3E%3C/svg%3E">
<style>/* SPDX-License-Identifier: MIT */
:root {
  --bg: #f5f6f9; --surface: #fff; --sunken: #eef0f5; --line: #dfe3ec; --text: #182033; --soft: #59647a;
  --accent: #4653d3; --accent-text: #fff; --accent-soft: #e8eafc;
  --pending: #7686a5; --retrying: #c47a0a; --claimed: #2574d8; --succeeded: #23885a; --dead: #cf3048; --compensated: #8250c4;
  --bad-bg: #fdecee; --bad-text: #a91d34; --warn-bg: #fdf3e0; --warn-text: #835005;
  --shadow: 0 1px 2px rgb(20 30 60 / 6%), 0 4px 16px rgb(20 30 60 / 5%);
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #10141d; --surface: #181e2a; --sunken: #131824; --line: #2a3242; --text: #e6eaf3; --soft: #98a3b8;
    --accent: #8b97ff; --accent-text: #10141d; --accent-soft: #262d52;
    --pending: #8c9bb8; --retrying: #e0a341; --claimed: #62a3f5; --succeeded: #4fbd8a; --dead: #f2677c; --compensated: #b48cf0;
    --bad-bg: #3a1c25; --bad-text: #ff9dab; --warn-bg: #36290f; --warn-text: #f3c778;
    --shadow: 0 1px 2px rgb(0 0 0 / 40%);
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; background: var(--bg); color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
h1 { font-size: 1.5rem; margin: 0; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: .95rem; margin: 0; }
h3 { font-size: 1.05rem; margin: 0; overflow-wrap: anywhere; }
code, pre { font-family: var(--mono); font-size: .86em; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 8px; top: 8px; background: var(--surface); padding: 8px; z-index: 9; }

.top { position: sticky; top: 0; z-index: 5; display: flex; align-items: center; gap: 8px 20px; flex-wrap: wrap;
  padding: 10px 24px; background: var(--surface); border-bottom: 1px solid var(--line); }
.brand { display: flex; align-items: center; gap: 9px; font-weight: 700; font-size: 1.1rem; color: var(--text); letter-spacing: -.02em; }
.brand:hover { text-decoration: none; }
.brand svg { width: 24px; height: 24px; }
.brand rect { fill: var(--accent); }
.brand path { fill: none; stroke: var(--accent-text); stroke-width: 3; stroke-linecap: round; stroke-linejoin: round; }
.store { color: var(--soft); font-size: .87rem; max-width: 24ch; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
nav { display: flex; gap: 4px; margin-right: auto; }
nav a { padding: 6px 12px; border-radius: 8px; color: var(--soft); font-weight: 500; }
nav a:hover { background: var(--sunken); text-decoration: none; }
nav a[aria-current] { background: var(--accent-soft); color: var(--accent); }
.live { display: flex; align-items: center; gap: 7px; font-size: .83rem; color: var(--soft); }
.live:not(:empty)::before { content: ""; width: 8px; height: 8px; border-radius: 50%; background: var(--succeeded); animation: pulse 2s infinite; }
.live.bad { color: var(--bad-text); }
.live.bad::before { background: var(--dead); animation: none; }
@keyframes pulse { 50% { opacity: .35; } }
@media (prefers-reduced-motion: reduce) { .live::before { animation: none !important; } }

main { max-width: 1240px; margin: 0 auto; padding: 24px; outline: none; transition: opacity .15s; }
main.loading { opacity: .55; }
main > h2 { margin: 26px 0 12px; color: var(--soft); font-size: .8rem; text-transform: uppercase; letter-spacing: .06em; }
.title { display: flex; align-items: center; justify-content: space-between; gap: 12px; flex-wrap: wrap; margin-bottom: 18px; }
.title > div:first-child { display: flex; align-items: center; gap: 12px; flex-wrap: wrap; }
.label { color: var(--soft); font-size: .8rem; font-weight: 500; }
.note { color: var(--soft); font-size: .83rem; }
.empty { text-align: center; color: var(--soft); padding: 60px 16px; }

button, .button { font: inherit; font-weight: 550; font-size: .9rem; padding: 6px 14px; min-height: 36px; border-radius: 8px; border: 1px solid var(--line);
  background: var(--surface); color: var(--text); cursor: pointer; display: inline-block; line-height: 1.4; }
button:hover:not(:disabled), .button:hover { border-color: var(--soft); text-decoration: none; }
button:disabled { opacity: .5; cursor: default; }
.primary { background: var(--accent); border-color: var(--accent); color: var(--accent-text); }
.primary:hover:not(:disabled) { filter: brightness(1.08); border-color: var(--accent); }
.danger { background: var(--dead); border-color: var(--dead); color: #fff; }
.danger-quiet { color: var(--bad-text); }
.quiet { background: transparent; color: var(--soft); }
.quiet.open { color: var(--succeeded); border-color: currentColor; }
.link { border: 0; padding: 0; min-height: 0; background: none; color: var(--accent); font-weight: 400; }
.buttons { display: flex; gap: 8px; flex-wrap: wrap; }

.tiles { display: grid; grid-template-columns: repeat(4, 1fr); gap: 14px; }
.tile { display: flex; flex-direction: column; gap: 2px; background: var(--surface); border: 1px solid var(--line); border-radius: 12px;
  padding: 16px 18px; box-shadow: var(--shadow); color: var(--text); min-width: 0; }
a.tile:hover { border-color: var(--accent); text-decoration: none; }
.tile strong { font-size: 1.75rem; line-height: 1.2; letter-spacing: -.02em; font-variant-numeric: tabular-nums; }
.tile .note { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.tile.bad strong { color: var(--bad-text); }

.queues { display: grid; gap: 14px; }
.queues + h2 { margin-top: 26px; }
.tiles + .queues:not(:empty) { margin-top: 18px; }
.queue { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; padding: 16px 18px; box-shadow: var(--shadow); }
.queue.attention { border-left: 4px solid var(--dead); }
.queue-head { display: flex; align-items: center; gap: 8px 12px; flex-wrap: wrap; }
.queue-head > .note { margin-left: auto; }
.queue h3 a { color: var(--text); }
.problem { background: var(--bad-bg); color: var(--bad-text); border-radius: 99px; padding: 2px 11px; font-size: .82rem; font-weight: 550; }
.metrics { display: grid; grid-template-columns: repeat(3, 1fr); gap: 22px; margin: 12px 0; }
.metric-head { display: flex; justify-content: space-between; align-items: baseline; gap: 8px; }
.metric-head strong { font-variant-numeric: tabular-nums; }
.metric.bad strong { color: var(--bad-text); }
.spark { width: 100%; height: 38px; display: block; margin-top: 4px; }
.spark .base { stroke: var(--line); vector-effect: non-scaling-stroke; }
.spark .line { fill: none; stroke-width: 1.6; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
.spark .area { opacity: .14; }
.depth .line { stroke: var(--claimed); } .depth .area { fill: var(--claimed); }
.rate .line { stroke: var(--succeeded); } .rate .area { fill: var(--succeeded); }
.overdue .line { stroke: var(--retrying); } .overdue .area { fill: var(--retrying); }
.bar { width: 100%; height: 8px; border-radius: 4px; display: block; background: var(--sunken); }
rect.pending { fill: var(--pending); } rect.retrying { fill: var(--retrying); } rect.claimed { fill: var(--claimed); }
rect.succeeded { fill: var(--succeeded); } rect.dead { fill: var(--dead); }
.states { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 10px 0 0; padding: 0; font-size: .86rem; }
)page";
    out += R"page(.states a { color: var(--soft); } .states b { color: var(--text); font-variant-numeric: tabular-nums; }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 3px; margin-right: 6px; }
.dot.pending { background: var(--pending); } .dot.retrying { background: var(--retrying); } .dot.claimed { background: var(--claimed); }
.dot.succeeded { background: var(--succeeded); } .dot.dead { background: var(--dead); }

.badge { font-size: .78rem; font-weight: 600; padding: 2px 10px; border-radius: 99px; color: var(--state); white-space: nowrap;
  background: color-mix(in srgb, var(--state) 15%, transparent); --state: var(--pending); }
.badge.retrying { --state: var(--retrying); } .badge.claimed { --state: var(--claimed); } .badge.succeeded { --state: var(--succeeded); }
.badge.dead { --state: var(--dead); } .badge.compensated { --state: var(--compensated); }
.tag { font-size: .74rem; color: var(--soft); border: 1px solid var(--line); border-radius: 5px; padding: 1px 6px; margin-left: 6px; }

.filters { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; padding: 14px 18px; margin-bottom: 16px; }
.chips { display: flex; gap: 6px; flex-wrap: wrap; margin-bottom: 12px; }
.chip { padding: 4px 13px; border-radius: 99px; border: 1px solid var(--line); color: var(--soft); font-size: .87rem; font-weight: 500; }
.chip:hover { border-color: var(--accent); text-decoration: none; }
.chip.on { background: var(--accent); border-color: var(--accent); color: var(--accent-text); }
.fields { display: flex; flex-wrap: wrap; gap: 10px; align-items: flex-end; }
.field { display: flex; flex-direction: column; gap: 3px; flex: 1 1 150px; min-width: 0; max-width: 260px; }
.field label { font-size: .78rem; color: var(--soft); font-weight: 500; }
input, select { font: inherit; font-size: .9rem; padding: 6px 10px; border: 1px solid var(--line); border-radius: 8px; background: var(--sunken);
  color: var(--text); width: 100%; min-width: 0; height: 36px; }
details { margin-top: 10px; } summary { cursor: pointer; color: var(--soft); font-size: .86rem; width: max-content; } details .fields { margin-top: 10px; }

.table { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; overflow: hidden; box-shadow: var(--shadow); }
.table.flat { box-shadow: none; border: 0; border-radius: 0; }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; font-size: .77rem; color: var(--soft); font-weight: 600; padding: 10px 14px; background: var(--sunken); white-space: nowrap; }
td { padding: 10px 14px; border-top: 1px solid var(--line); vertical-align: top; font-size: .9rem; overflow-wrap: anywhere; }
td:first-child { white-space: nowrap; } td[data-label=entry] { min-width: 200px; }
tbody tr { cursor: pointer; } .flat tbody tr { cursor: default; }
tbody tr:hover { background: var(--sunken); }
.topic { font-weight: 600; color: var(--text); }
.sub { color: var(--soft); font-size: .81rem; } .sub code { white-space: nowrap; }
.why { color: var(--soft); min-width: 220px; }
.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
.error { color: var(--bad-text); background: var(--bad-bg); padding: 1px 7px; border-radius: 5px; display: inline-block; max-width: 20ch; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; vertical-align: bottom; }
.list-foot { display: flex; align-items: center; gap: 12px; padding: 12px 4px; }
.status { color: var(--soft); font-size: .87rem; margin: 0; }

.why-panel { border-radius: 12px; padding: 14px 18px; margin-bottom: 16px; background: var(--accent-soft); border-left: 4px solid var(--accent); }
.why-panel p { margin: 0; overflow-wrap: anywhere; } #why { font-size: 1.05rem; font-weight: 500; }
.why-panel.dead, .why-panel.lease_over { background: var(--bad-bg); border-color: var(--dead); }
.why-panel.due, .why-panel.blocked, .why-panel.waits_for_reply { background: var(--warn-bg); border-color: var(--retrying); }
.columns { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 7fr); gap: 16px; align-items: start; }
.panel { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; margin-bottom: 16px; box-shadow: var(--shadow); overflow: hidden; }
.panel-head { display: flex; align-items: center; gap: 8px 14px; flex-wrap: wrap; padding: 12px 18px; border-bottom: 1px solid var(--line); }
.panel-head .note { margin-left: auto; } .panel > p { padding: 0 18px; }
.facts { margin: 0; padding: 6px 18px 12px; }
.fact { display: grid; grid-template-columns: 108px minmax(0, 1fr); gap: 10px; padding: 6px 0; border-bottom: 1px solid var(--line); font-size: .88rem; }
.fact:last-child { border: 0; } dt { color: var(--soft); overflow-wrap: anywhere; } dd { margin: 0; overflow-wrap: anywhere; unicode-bidi: isolate; }
.trail { margin: 0; padding: 10px 18px 12px 38px; font-size: .88rem; }
pre { margin: 0; padding: 14px 18px; max-height: 420px; overflow: auto; background: var(--sunken); white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
.tabs { display: inline-flex; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
.tabs button { border: 0; min-height: 0; border-radius: 0; padding: 3px 12px; font-size: .82rem; color: var(--soft); }
.tabs button[aria-selected=true] { background: var(--accent-soft); color: var(--accent); }

.direction { font-size: .83rem; font-weight: 600; color: var(--claimed); } .direction.back { color: var(--compensated); }
.saga-sentence { margin: 14px 0 4px; }
.steps { list-style: none; display: flex; margin: 0; padding: 18px; overflow-x: auto; }
.step { flex: 1 0 132px; position: relative; display: flex; flex-direction: column; align-items: center; gap: 3px; text-align: center; --state: var(--pending); }
.step::before { content: ""; position: absolute; top: 20px; left: -50%; width: 100%; height: 3px; background: color-mix(in srgb, var(--state) 55%, transparent); }
.step:first-child::before { display: none; }
.step-mark { position: relative; z-index: 1; width: 42px; height: 42px; border-radius: 50%; display: grid; place-items: center; font-size: 1.15rem; font-weight: 700;
  background: var(--surface); border: 3px solid var(--state); color: var(--state); }
.step-name { font-weight: 600; font-size: .9rem; overflow-wrap: anywhere; } .step-word { color: var(--soft); font-size: .8rem; }
.step-result { color: var(--soft); max-width: 120px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.step.done { --state: var(--succeeded); } .step.failed { --state: var(--dead); } .step.unknown { --state: var(--retrying); }
.step.begun, .step.undecided { --state: var(--claimed); } .step.undone { --state: var(--compensated); } .step.kept, .step.skipped { --state: var(--pending); }
.step.end.completed { --state: var(--succeeded); } .step.end.compensated { --state: var(--compensated); } .step.end.dead { --state: var(--dead); }
.step.end .step-mark { background: var(--state); color: var(--surface); } .step.open { opacity: .55; } .step.open .step-mark { border-style: dashed; }
.step.here .step-mark { box-shadow: 0 0 0 6px color-mix(in srgb, var(--here, var(--state)) 22%, transparent); }
.step.stuck .step-mark { border-color: var(--dead); } .step.stuck { --here: var(--dead); }
.step-here { background: var(--here, var(--state)); color: var(--surface); border-radius: 99px; padding: 1px 10px; font-size: .76rem; font-weight: 600; margin-top: 3px; }

dialog { border: 1px solid var(--line); border-radius: 14px; padding: 22px 24px; width: min(460px, 92vw); background: var(--surface); color: var(--text); box-shadow: 0 20px 60px rgb(0 0 0 / 30%); }
dialog::backdrop { background: rgb(10 15 30 / 45%); }
dialog h2 { font-size: 1.12rem; } dialog label { font-size: .82rem; color: var(--soft); } dialog .buttons { justify-content: flex-end; margin-top: 18px; }
)page";
    out += R"page(.progress { height: 6px; border-radius: 3px; background: var(--sunken); overflow: hidden; } .progress i { display: block; height: 100%; width: 0; background: var(--accent); transition: width .2s; }
.toast { position: fixed; left: 50%; bottom: 24px; transform: translate(-50%, 80px); opacity: 0; background: var(--text); color: var(--bg); padding: 10px 18px;
  border-radius: 10px; transition: .2s; z-index: 9; max-width: 92vw; pointer-events: none; }
.toast.shown { transform: translate(-50%, 0); opacity: 1; } .toast.bad { background: var(--dead); color: #fff; }

@media (max-width: 760px) {
  .top { padding: 10px 14px; gap: 8px 12px; } .store { display: none; } nav { order: 9; width: 100%; } nav a { flex: 1; text-align: center; padding: 6px 4px; }
  .brand { margin-right: auto; }
  main { padding: 16px 12px; } .tiles { grid-template-columns: 1fr 1fr; gap: 10px; } .tile { padding: 12px 14px; } .tile strong { font-size: 1.4rem; }
  .metrics { gap: 12px; } .metric-head { flex-direction: column; gap: 0; } .metric .label { font-size: .74rem; } .columns { grid-template-columns: minmax(0, 1fr); gap: 0; } .queue-head > .note { margin-left: 0; }
  .field { max-width: none; flex-basis: 130px; }
  thead { display: none; } table, tbody, tr, td { display: block; } tr { padding: 10px 14px; border-top: 1px solid var(--line); } tr:first-child { border: 0; }
  td { border: 0; padding: 2px 0; } td:empty { display: none; } .why { min-width: 0; }
  td[data-label=attempts]::before, td[data-label=age]::before { content: attr(data-label) " "; color: var(--soft); } td.number { display: inline-block; margin-right: 14px; font-size: .82rem; }
  .steps { flex-direction: column; gap: 16px; } .step { flex: none; display: grid; grid-template-columns: 42px 1fr; column-gap: 14px; text-align: left; justify-items: start; align-items: center; }
  .step::before { left: 20px; top: -16px; width: 3px; height: 16px; } .step-mark { grid-row: span 4; align-self: start; } .step > :not(.step-mark) { grid-column: 2; }
}
</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
  <a class="brand" href="#/" aria-label="vouch, overview">
    <svg viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="6"/><path d="M6 8l5 9 7-12"/></svg>
    <span>vouch</span>
  </a>
  <span id="store" class="store"></span>
  <nav aria-label="Views">
    <a href="#/" data-view="overview">Overview</a>
    <a href="#/entries" data-view="entries">Entries</a>
    <a href="#/dead" data-view="dead">Dead letters</a>
  </nav>
  <span id="live" class="live" role="status"></span>
  <button id="lock" class="quiet" type="button">Unlock changes</button>
</header>
<main id="main" tabindex="-1"></main>
<div id="toast" class="toast" role="status" aria-live="polite"></div>
<dialog id="dialog" aria-labelledby="dialog-title"></dialog>
<noscript><p class="empty">This page needs JavaScript. The same data is under <a href="api/overview">api/overview</a>.</p></noscript>
<script>"use strict";
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
// Requests. The token is kept for this tab only, and sent as a header, which no page of another site can do.

const TOKEN = "vouch-token";
const token = () => sessionStorage.getItem(TOKEN) || "";

// `vouch serve` prints an address with the token behind the `#`, which browsers do not send.
function takeTokenFromAddress() {
  const match = /^#token=([^&]+)$/.exec(location.hash);
  if (match) {
    sessionStorage.setItem(TOKEN, decodeURIComponent(match[1]));
    history.replaceState(null, "", location.pathname + "#/");
  }
}

async function send(method, path, form) {
)page";
    out += R"page(  const headers = token() ? { Authorization: "Bearer " + token() } : {};
  const how = { method, headers, cache: "no-store", credentials: "omit", redirect: "error" };
  if (form) {
    headers["Content-Type"] = "application/x-www-form-urlencoded";
    how.body = new URLSearchParams(form).toString();
  }
  let answer;
  try {
    answer = await fetch(path, how);
  } catch (e) {
    throw new Error("The server does not answer.");
  }
  const body = await answer.json().catch(() => ({ error: "The server answered with status " + answer.status + "." }));
  if (!answer.ok) {
    const error = new Error(body.error || "The server answered with status " + answer.status + ".");
    error.status = answer.status;
    throw error;
  }
  return body;
}
const get = (path, query) => {
  const given = Object.entries(query || {}).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  return send("GET", path + (given.length ? "?" + new URLSearchParams(given) : ""));
};
const post = (path, form) => send("POST", path, form || {});

async function unlock() {
  const given = await ask("Unlock changes", (close) => {
    const field = el("input", { type: "password", id: "token-field", autocomplete: "off", autofocus: true });
    const submit = () => close(field.value.trim());
    field.addEventListener("keydown", (e) => { if (e.key === "Enter") { e.preventDefault(); submit(); } });
    return [
      el("p", {}, "Changes need the token that the server was started with. It stays in this tab."),
      el("label", { for: "token-field" }, "Token"), field,
      el("div", { class: "buttons" },
        el("button", { type: "button", class: "quiet", on: { click: () => close() } }, "Cancel"),
        el("button", { type: "button", class: "primary", on: { click: submit } }, "Unlock"))];
  });
  if (given) sessionStorage.setItem(TOKEN, given);
  return Boolean(given);
}

// Does a change; asks for the token if it is missing or wrong.
async function change(path, form) {
  if (!token() && !(await unlock())) return null;
  try {
    return await post(path, form);
  } catch (e) {
    if (e.status === 401) {
      sessionStorage.removeItem(TOKEN);
      refreshLock();
      toast("The token is not right.", true);
      return null;
    }
    toast(e.message, true);
    return null;
  } finally {
    refreshLock();
  }
}

let isReadOnly = false;
function refreshLock() {
  const lock = byId("lock");
  lock.hidden = false;
  lock.disabled = isReadOnly;
  lock.textContent = isReadOnly ? "Read-only" : token() ? "Changes unlocked" : "Unlock changes";
  lock.className = "quiet" + (token() && !isReadOnly ? " open" : "");
}
// Small charts: a line with its area, from zero to the largest value, and a bar of the states.

const CHART = { width: 160, height: 36 };

// `values` has a number per look, or null where there is none.
function sparkline(values, label, kind) {
  const { width, height } = CHART;
  const known = values.filter((v) => v !== null);
  const most = Math.max(...known, 0);
  const box = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "spark " + kind, role: "img", "aria-label": label,
    preserveAspectRatio: "none" });
  box.append(svg("line", { x1: 0, x2: width, y1: height - 1, y2: height - 1, class: "base" }));
  if (known.length < 2) return box;
  const step = width / Math.max(values.length - 1, 1);
  const y = (v) => (most === 0 ? height - 2 : height - 2 - (v / most) * (height - 6));
  const points = values.map((v, i) => (v === null ? null : [i * step, y(v)])).filter(Boolean);
  const line = points.map(([px, py]) => px.toFixed(1) + "," + py.toFixed(1)).join(" ");
  const first = points[0][0].toFixed(1);
  const last = points[points.length - 1][0].toFixed(1);
  box.append(svg("polygon", { points: `${first},${height} ${line} ${last},${height}`, class: "area" }));
  box.append(svg("polyline", { points: line, class: "line" }));
  return box;
}

function metric(title, value, chart, isBad) {
  return el("div", { class: "metric" + (isBad ? " bad" : "") },
    el("div", { class: "metric-head" }, el("span", { class: "label" }, title), el("strong", {}, value)), chart);
}

const STATES = ["pending", "retrying", "claimed", "succeeded", "dead"];
function stateBar(counts) {
  const total = STATES.reduce((sum, s) => sum + counts[s], 0);
  const label = STATES.map((s) => count(counts[s]) + " " + s).join(", ");
  const box = svg("svg", { viewBox: "0 0 1000 8", class: "bar", role: "img", "aria-label": label, preserveAspectRatio: "none" });
  let x = 0;
  for (const s of STATES) {
    if (!counts[s] || !total) continue;
    // A state with one entry among a million can still be seen.
    const width = Math.max((counts[s] / total) * 1000, 6);
    box.append(svg("rect", { x: x.toFixed(1), y: 0, width: width.toFixed(1), height: 8, class: s }));
    x += width;
  }
  if (x > 1000) box.setAttribute("viewBox", `0 0 ${x.toFixed(0)} 8`);
  return box;
}
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
)page";
    out += R"page(    el("div", { class: "metrics" },
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
)page";
    out += R"page(    if (run.isOver()) return;
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
// Bytes in three forms: text, JSON with indentation, and a hex dump.

const HEX_SHOWN = 4096;

function bytesOf(data) {
  if (data.encoding === "text") return new TextEncoder().encode(data.data);
  return Uint8Array.from(atob(data.data), (c) => c.charCodeAt(0));
}

function hexDump(bytes) {
  const lines = [];
  for (let i = 0; i < Math.min(bytes.length, HEX_SHOWN); i += 16) {
    const row = [...bytes.slice(i, i + 16)];
    const hex = row.map((b) => b.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((b) => (b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : ".")).join("");
    lines.push(i.toString(16).padStart(6, "0") + "  " + hex.padEnd(48) + " " + text);
  }
  return lines.join("\n") + (bytes.length > HEX_SHOWN ? "\n…" : "");
}

function asJson(data) {
  if (data.encoding !== "text" || data.is_cut) return null;
  try {
    return JSON.stringify(JSON.parse(data.data), null, 2);
  } catch (e) {
    return null;
  }
}

// `title` names the bytes; `id` makes the tabs' ids unique.
function bytesPanel(title, id, data, download) {
  const bytes = bytesOf(data);
  const json = asJson(data);
  const text = data.encoding === "text" ? data.data : new TextDecoder().decode(bytes);
  const forms = { Text: text.replace(/[^\n\t]/g, (c) => c.replace(HIDDEN, escapeHidden)), JSON: json, Hex: hexDump(bytes) };
  const pre = el("pre", { id: id + "-panel", tabindex: "0", role: "tabpanel" });
  const tabs = Object.keys(forms).map((name) => el("button", { type: "button", role: "tab", "aria-controls": id + "-panel",
    "data-form": name, disabled: forms[name] === null, title: forms[name] === null ? "It is not JSON" : undefined }, name));
  const choose = (name) => {
    pre.textContent = forms[name];
    for (const tab of tabs) {
      const isOn = tab.dataset.form === name;
      tab.setAttribute("aria-selected", String(isOn));
      tab.tabIndex = isOn ? 0 : -1;
    }
  };
  const list = el("div", { role: "tablist", class: "tabs", "aria-label": title, on: { keydown: (e) => {
    const way = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    const open = tabs.filter((t) => !t.disabled);
    if (!way) return;
    const to = open[(open.indexOf(document.activeElement) + way + open.length) % open.length];
    choose(to.dataset.form);
    to.focus();
  } } }, tabs);
  for (const tab of tabs) tab.addEventListener("click", () => choose(tab.dataset.form));
  choose(json !== null ? "JSON" : data.encoding === "text" ? "Text" : "Hex");
  return el("section", { class: "panel bytes", id },
    el("div", { class: "panel-head" }, el("h2", {}, title), list,
      el("span", { class: "note" }, count(data.size) + " bytes" + (data.is_cut ? ", the first shown" : ""), " ",
        download ? el("button", { type: "button", class: "link", on: { click: download } }, "download") : "")),
    data.size ? pre : el("p", { class: "note" }, "empty"));
}
// A saga as a picture: its steps from left to right, what is known of each, and where the saga stands. Steps that have
// not begun are not stored, so the picture ends with an open line while the saga goes forward.

const STEP_MARKS = { begun: "…", done: "✓", failed: "✕", unknown: "?", undone: "↶", kept: "=", skipped: "–", undecided: "…" };
const STEP_WORDS = {
  begun: "running or waiting", done: "done", failed: "failed, no effect", unknown: "may have had an effect",
  undone: "undone", kept: "kept, cannot be undone", skipped: "skipped", undecided: "condition not decided",
};
const ENDS = { completed: "completed", compensated: "compensated", dead: "stuck" };

function sagaSentence(saga) {
  if (saga.end === "completed") return "All steps are done.";
  if (saga.end === "compensated") return "Undone in reverse because of " + shown(saga.reason) + ".";
  const at = saga.step ? "at step " + shown(saga.step) : "at the end";
  const way = saga.direction === "back" ? "Undoing because of " + shown(saga.reason) + ", " : "Going forward, ";
  if (saga.end === "dead") return way + "stuck " + at + ". Remove the cause, then resume it.";
  const waits = saga.waits_in ? "; it waits for " + shown(saga.waits_in) : "";
  return way + at + (saga.attempts ? ", attempt " + saga.attempts : "") + waits + ".";
}

function sagaNode(step, i, saga) {
  const isHere = !saga.end ? i === saga.at : saga.end === "dead" && i === saga.at;
  const known = STEP_WORDS[step.state] ? step.state : "unknown";
  return el("li", { class: "step " + known + (isHere ? " here" : "") + (isHere && saga.end ? " stuck" : "") },
    el("span", { class: "step-mark", "aria-hidden": "true" }, STEP_MARKS[known]),
    el("span", { class: "step-name" }, shown(step.name, 40)),
    el("span", { class: "step-word" }, STEP_WORDS[known]),
    step.result ? el("code", { class: "step-result", title: "result" },
      step.result.encoding === "text" ? shown(step.result.data, 40) : step.result.size + " bytes") : "",
    isHere ? el("span", { class: "step-here" }, saga.end === "dead" ? "stuck here" : "is here") : "");
}

function sagaPicture(saga, entry) {
  const steps = saga.steps.map((step, i) => sagaNode(step, i, saga));
  const last = saga.end ? el("li", { class: "step end " + saga.end },
    el("span", { class: "step-mark", "aria-hidden": "true" }, saga.end === "completed" ? "✓" : saga.end === "dead" ? "!" : "↶"),
    el("span", { class: "step-name" }, ENDS[saga.end])) :
    el("li", { class: "step open" }, el("span", { class: "step-mark", "aria-hidden": "true" }, "⋯"),
      el("span", { class: "step-name" }, saga.direction === "back" ? "undoing" : "next steps"));
  return el("section", { class: "panel saga", id: "saga" },
    el("div", { class: "panel-head" }, el("h2", {}, "Saga " + shown(saga.definition, 40)),
      el("span", { class: "note" }, "version " + saga.version),
      el("span", { class: "direction " + (saga.direction === "back" ? "back" : "forward") },
        saga.direction === "back" ? "← compensating" : "forward →")),
    el("p", { class: "saga-sentence" }, sagaSentence(saga)),
    el("ol", { class: "steps" + (saga.direction === "back" ? " back" : ""), "aria-label": "Steps of the saga" }, steps, last),
    saga.waits_for ? el("p", { class: "note" }, "It waits for the command ",
      el("a", { href: link("entry/" + saga.waits_for) }, shortId(saga.waits_for)),
      saga.waits_until ? ", at most until " + utc(saga.waits_until) : "") : "");
}
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
)page";
    out += R"page(  if (isReadOnly) return "";
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
)page";
    out += R"page(      done += page.requeued;
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
</script>
</body>
</html>
)page";
    return out;
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch
// clang-format on
