"use strict";

/** Shows an episode, and beside it another one of the same task if asked. */
async function openEpisode(row, beside) {
  Object.assign(book, { opened: row, beside });
  const left = await stepsOf(row);
  const right = beside === undefined ? null : await stepsOf(beside);
  if (book.opened !== row || book.beside !== beside) return; // another one was opened meanwhile
  const parted = left && right ? partsAt(left, right) : null;
  const panes = make("div", { class: right ? "panes two" : "panes" }, pane(row, left, parted), right ? pane(beside, right, parted) : null);
  const place = document.getElementById("opened");
  place.replaceChildren(...[tools(row, beside), meeting(left, right, parted), panes].filter(Boolean));
  place.hidden = false;
  history.replaceState(null, "", `#episode=${book.columns.id[row]}${beside === undefined ? "" : `&beside=${book.columns.id[beside]}`}`);
  show(false);
  place.focus({ preventScroll: true });
  place.scrollIntoView({ block: "start" });
}

function closeEpisode() {
  const row = book.opened;
  Object.assign(book, { opened: undefined, beside: undefined });
  const place = document.getElementById("opened");
  place.hidden = true;
  place.replaceChildren();
  history.replaceState(null, "", "#episodes");
  show(false);
  (document.querySelector(`#list .open[data-row="${row}"]`) || document.querySelector("#list .open"))?.focus();
}

function tools(row, beside) {
  const { columns } = book;
  const others = book.all.filter((other) => other !== row && columns.block[other] >= 0 && ["source", "setting", "task_id"].every((name) => columns[name][other] === columns[name][row]));
  const near = (other) => (columns.evaluation[other] === columns.evaluation[row] ? 0 : 2) + (columns.rollout[other] === columns.rollout[row] ? 0 : 1);
  others.sort((a, b) => near(a) - near(b) || a - b);
  const name = (other) => `${word("policy", other)}, rollout ${columns.rollout[other]}, return ${fixed(facts.return(other))}${near(other) === 0 ? " (same draws)" : ""}`;
  const choice = make("select", { id: "beside", onchange: (event) => openEpisode(row, event.target.value === "" ? undefined : Number(event.target.value)) });
  choice.append(make("option", { value: "" }, others.length ? "nothing" : "no other episode of this task has its steps here"));
  choice.append(...others.map((other) => make("option", { value: other, selected: other === beside }, name(other))));
  const walkTo = (by) => {
    const at = book.rows.indexOf(row) + by;
    return at >= 0 && at < book.rows.length ? book.rows[at] : undefined;
  };
  const go = (by, text) => make("button", { type: "button", disabled: walkTo(by) === undefined, onclick: () => openEpisode(walkTo(by)) }, text);
  return make("div", { class: "tools" }, make("label", {}, "Put beside it: ", choice), go(-1, "← Previous"), go(1, "Next →"), make("button", { type: "button", onclick: closeEpisode }, "Close (Esc)"));
}

/** The first step in which two episodes differ in what was done or what came of it, from 0; their length if in none. */
function partsAt(left, right) {
  const told = (step) => JSON.stringify([step.action, step.status, step.check, step.tool, step.artifact, step.evidence]);
  let at = 0;
  while (at < left.steps.length && at < right.steps.length && told(left.steps[at]) === told(right.steps[at])) at += 1;
  return at;
}

function meeting(left, right, parted) {
  if (!right) return null;
  const longest = Math.max(left.steps.length, right.steps.length);
  const same = parted === 0 ? "They differ from the first step on." : `The first ${parted} step${parted > 1 ? "s are" : " is"} the same; they differ from step ${parted + 1} on.`;
  return make("p", {}, parted === longest ? "Both do the same, with the same outcome, to the end." : same);
}

function pane(row, episode, parted) {
  const { columns } = book;
  const status = word("eval_status", row);
  const cost = facts.cost(row);
  const parts = [
    `return ${fixed(facts.return(row))}`,
    `maturity ${fixed(facts.maturity(row))} (paper), ${fixed(facts.strict(row))} (strict)`,
    status,
    word("termination", row) ? `ended by ${word("termination", row)}` : "",
    facts.tokens(row) === null ? "" : `${facts.tokens(row).toLocaleString("en")} tokens`,
    cost === null ? "price unknown" : `$${cost.toFixed(4)}`,
    word("difficulty", row),
  ];
  const head = [
    make("h3", {}, `${word("policy", row)} on ${word("setting", row)}, task ${word("task_id", row)}`),
    make("p", { class: "facts" }, parts.filter(Boolean).join(" · ")),
    make("p", { class: "facts" }, `rollout ${columns.rollout[row]}, seed ${columns.seed[row]}, ${word("phase", row)} run ${word("run", row)}, executor ${word("executor", row)}`),
    make("p", { class: "id" }, columns.id[row]),
  ];
  if (!episode) {
    const why = status === "infra_missing" ? "It failed for reasons outside the agent: there are no steps and there is no return." : "Its steps are not in this page, which stays small; make the report with a larger details_mb to have more.";
    return make("article", { class: "episode" }, head, make("p", {}, why));
  }
  return make("article", { class: "episode" }, head, scores(episode), steps(row, episode, parted), ending(row, episode));
}

function scores(episode) {
  const rubric = make("details", {}, make("summary", {}, `Rubric: ${episode.rubric.length} ${episode.rubric.length === 1 ? "criterion" : "criteria"}`), make("ul", {}, episode.rubric.map(([name, score, weight]) => make("li", {}, `${name}: ${fixed(score)} (weight ${weight})`))));
  const events = episode.events.filter(([, , applicable]) => applicable);
  const mature = make("details", {}, make("summary", {}, "Maturity events"), make("ul", {}, events.map(([preset, event, , fired]) => make("li", {}, `${event}: ${fired ? "fired" : "did not fire"} (${preset})`))));
  return make("div", {}, episode.rubric.length ? rubric : null, events.length ? mature : null);
}

function steps(row, episode, parted) {
  const names = book.data.features[word("setting", row)] || [];
  let text = null;
  return episode.steps.map((step, index) => {
    const made = oneStep(step, index, episode, names, text);
    if (parted !== null && index === parted) made.classList.add("parted");
    if (step.artifact) text = episode.artifacts[step.artifact[1]] ?? text;
    return made;
  });
}

function oneStep(step, index, episode, names, before) {
  const actions = book.data.actions;
  const chance = step.probs[step.action];
  const head = make(
    "h4",
    {},
    make("span", { class: "when" }, `step ${index + 1} of at most ${episode.horizon}`),
    actions[step.action],
    make("span", { class: "when" }, `chosen with ${(100 * chance).toFixed(chance < 0.1 ? 1 : 0)} %`),
    step.status === "ok" ? null : make("span", { class: "bad" }, `${step.status}${step.error ? `: ${step.error}` : ""}`),
  );
  return make("section", { class: "step", "aria-label": `step ${index + 1}` }, head, make("p", { class: "state" }, `Before it: ${stateText(step.state)}`), make("div", { class: "body" }, outcome(step, episode, before), choices(step, names)));
}

function stateText([version, evidence, fresh, problems, checked, tested, tokens, stalled]) {
  const parts = [
    version ? `draft version ${version}${checked ? ", checked" : ", not checked"}${tested ? ", tested" : ""}` : "no draft",
    `${evidence} piece${evidence === 1 ? "" : "s"} of evidence${fresh ? ` (${fresh} since the last draft)` : ""}`,
    problems ? `${problems} open problem${problems === 1 ? "" : "s"}` : "",
    `${tokens.toLocaleString("en")} tokens used`,
    stalled ? `${stalled} step${stalled === 1 ? "" : "s"} without progress` : "",
  ];
  return parts.filter(Boolean).join(" · ");
}

function outcome(step, episode, before) {
  const made = [];
  const list = (items) => (items.length ? make("ul", {}, items.map((item) => make("li", {}, item))) : null);
  if (step.evidence.length) made.push(make("p", {}, "Evidence gathered:"), list(step.evidence));
  if (step.tool) {
    const [name, valid, ok, version, passed, total, problems] = step.tool;
    const ran = !valid ? "was called with arguments that do not fit" : ok ? "ran" : "ended in an error";
    made.push(make("p", { class: valid && ok && passed === total ? "" : "bad" }, `Tool ${name} ${ran}${version ? ` on version ${version}` : ""}${total ? `: ${passed} of ${total} passed` : ""}.`), list(problems));
  }
  if (step.check) {
    const [score, version, passed, total, problems] = step.check;
    made.push(make("p", { class: problems.length ? "bad" : "" }, `Check of version ${version}: ${passed} of ${total} items passed, score ${fixed(score, 2)}, ${problems.length ? "problems named:" : "no problem named."}`), list(problems));
  }
  if (step.artifact) made.push(version(step.artifact, episode, before));
  if (step.claims?.length) made.push(make("p", {}, "Claims of the draft:"), list(step.claims.map(([text, supported]) => `${supported ? "supported" : "not supported"}: ${text}`)));
  if (step.note) made.push(make("p", {}, step.note));
  if (!made.length) made.push(make("p", {}, "Nothing new came of it."));
  const seconds = step.seconds ? `, ${step.seconds} s` : "";
  made.push(make("p", { class: "state" }, `${step.calls} call${step.calls === 1 ? "" : "s"}, ${step.tokens.toLocaleString("en")} tokens${seconds}`));
  return make("div", {}, made);
}

function version([number, sha, chars], episode, before) {
  const text = episode.artifacts[sha];
  if (text === undefined) return make("p", {}, `Draft version ${number}, ${chars} characters; its text is not stored.`);
  const lines = before === null ? null : changes(before.split("\n"), text.split("\n"));
  const shown = lines
    ? lines.map(([kind, line]) => make("span", { class: kind }, `${{ added: "+ ", dropped: "− ", kept: "  " }[kind]}${line}\n`))
    : text;
  const title = `Draft version ${number}, ${chars.toLocaleString("en")} characters${lines ? ", with what changed" : ""}`;
  return make("details", { open: true, class: "version" }, make("summary", {}, title), make("pre", { class: "text", tabindex: 0 }, shown));
}

/** Lines kept, dropped and added from one text to the next, by their longest common subsequence; null if too long. */
function changes(from, to) {
  if (from.length * to.length > 250000) return null;
  const common = Array.from({ length: from.length + 1 }, () => new Uint16Array(to.length + 1));
  for (let i = from.length - 1; i >= 0; i -= 1) {
    for (let j = to.length - 1; j >= 0; j -= 1) {
      common[i][j] = from[i] === to[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const lines = [];
  let [i, j] = [0, 0];
  while (i < from.length || j < to.length) {
    if (i < from.length && j < to.length && from[i] === to[j]) {
      lines.push(["kept", from[i]]);
      [i, j] = [i + 1, j + 1];
    } else if (i < from.length && (j >= to.length || common[i + 1][j] >= common[i][j + 1])) {
      lines.push(["dropped", from[i]]);
      i += 1;
    } else {
      lines.push(["added", to[j]]);
      j += 1;
    }
  }
  return lines;
}

function choices(step, names) {
  const rows = book.data.actions.map((action, index) => {
    const legal = (step.legal >> index) & 1;
    const chosen = index === step.action;
    const base = index === step.base ? (chosen ? "as base would" : "base would") : "";
    const marks = [chosen ? "chosen" : "", base, legal ? "" : "not legal"];
    return make("tr", { class: index === step.action ? "taken" : legal ? "" : "illegal" }, make("th", { scope: "row" }, action), make("td", {}, bar("bar", step.probs[index])), make("td", { class: "number" }, `${(100 * step.probs[index]).toFixed(1)} %`), make("td", {}, marks.filter(Boolean).join(", ")));
  });
  const probs = make("table", { class: "probs" }, make("caption", { class: "visually-hidden" }, "Legal actions and probabilities"), make("tbody", {}, rows));
  const state = make("details", {}, make("summary", {}, "State features, as a controller reads them"));
  state.addEventListener("toggle", () => {
    if (state.childElementCount > 1) return;
    const listed = step.features.map((value, index) => make("tr", {}, make("th", { scope: "row" }, names[index] || `feature ${index}`), make("td", { class: "number" }, value)));
    state.append(make("table", { class: "probs" }, make("tbody", {}, listed)));
  });
  return make("div", {}, probs, state);
}

function ending(row, episode) {
  const how = { submit: "The policy submitted", horizon: "The steps were used up, and the harness submitted", budget: "The budget was spent, and the harness submitted" };
  const what = episode.final ? "the last draft" : "nothing";
  return make("p", {}, `${how[word("termination", row)] || "It ended, submitting"} ${what}: return ${fixed(facts.return(row))}.`);
}
