// SPDX-License-Identifier: MIT
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
  const headers = token() ? { Authorization: "Bearer " + token() } : {};
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
