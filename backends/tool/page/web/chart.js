// SPDX-License-Identifier: MIT
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
