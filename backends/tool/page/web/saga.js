// SPDX-License-Identifier: MIT
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
