// SPDX-License-Identifier: MIT
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
