"use strict";

const PAGE = 25;
const AGAINST = { better: "▲ better", same: "= same", worse: "▼ worse" };

/** All episodes as columns of integers, the words they stand for, and what is shown of them. */
const book = { columns: null, words: null, rows: [], page: 0, sort: null, down: false, blocks: new Map() };

const word = (name, row) => book.words[name][book.columns[name][row]];
const number = (name, row, scale = 1, shift = 0) => {
  const value = book.columns[name][row];
  return value < 0 ? null : value / scale - shift;
};
const facts = {
  return: (row) => number("return", row, 1000),
  maturity: (row) => number("maturity_paper", row, 1000, 2),
  strict: (row) => number("maturity_strict", row, 1000, 2),
  tokens: (row) => number("tokens", row),
  steps: (row) => number("n_steps", row),
  cost: (row) => number("cost_usd", row, 1e6),
};
const fixed = (value, digits = 3) => (value === null ? "–" : value.toFixed(digits).replace("-", "−"));

const LIST = [
  ["task", "task_id", (row) => word("task_id", row)],
  ["rollout", "rollout", (row) => book.columns.rollout[row]],
  ["setting", "setting", (row) => word("setting", row)],
  ["policy", "policy", (row) => word("policy", row)],
  ["return", "return", facts.return],
  ["against the reference", "against", (row) => word("against", row)],
  ["maturity", "maturity_paper", facts.maturity],
  ["steps", "n_steps", facts.steps],
  ["tokens", "tokens", facts.tokens],
  ["ended by", "termination", (row) => word("termination", row)],
  ["status", "eval_status", (row) => word("eval_status", row)],
  ["phase", "phase", (row) => word("phase", row)],
];
const NUMBERS = new Set(["rollout", "return", "maturity", "steps", "tokens"]);

async function openBook() {
  const data = await unpack("index");
  Object.assign(book, { columns: data.columns, words: data.columns.words, data });
  book.all = Array.from(book.columns.id, (_, row) => row);
  const filters = document.getElementById("filters");
  fill(filters.setting, "all settings", book.words.setting);
  fill(filters.policy, "all policies", book.words.policy);
  fill(filters.phase, "all phases", book.words.phase);
  fill(filters.verdict, "any", [...book.words.against.filter(Boolean), ...book.words.eval_status]);
  for (const option of filters.verdict.options) {
    if (AGAINST[option.value]) option.textContent = `${AGAINST[option.value]} than the reference`.replace("same than", "same as");
  }
  for (const kind of ["input", "change"]) filters.addEventListener(kind, refilter);
  filters.addEventListener("reset", () => setTimeout(refilter));
  filters.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("earlier").addEventListener("click", () => turn(-1));
  document.getElementById("later").addEventListener("click", () => turn(1));
  document.querySelector("#list tbody").addEventListener("keydown", walk);
  document.getElementById("opened").addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeEpisode();
  });
  heading();
  document.getElementById("browser").hidden = false;
  show(true);
  await follow();
  window.addEventListener("hashchange", follow);
}

/** Filters again if what is asked for is not what is shown. */
function refilter() {
  const asked = new URLSearchParams(new FormData(document.getElementById("filters"))).toString();
  if (asked === book.asked) return;
  book.asked = asked;
  show(true);
}

function fill(select, all, words) {
  select.append(make("option", { value: "" }, all), ...words.filter(Boolean).map((each) => make("option", { value: each }, each)));
}

function heading() {
  const cells = LIST.map(([title, column]) =>
    make("th", { scope: "col", class: NUMBERS.has(title) ? "number" : "", "data-column": column }, make("button", { type: "button", onclick: () => sortBy(column) }, title)),
  );
  document.querySelector("#list thead").replaceChildren(make("tr", {}, cells));
}

function sortBy(column) {
  book.down = book.sort === column ? !book.down : false;
  book.sort = column;
  for (const cell of document.querySelectorAll("#list th")) {
    if (cell.dataset.column === column) cell.setAttribute("aria-sort", book.down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  }
  show(true);
}

/** The rows that pass every filter, in the chosen order. Words are sorted in the index, so integers compare alike. */
function select() {
  const filters = document.getElementById("filters");
  const { columns, words } = book;
  const wanted = ["setting", "policy", "phase"].filter((name) => filters[name].value).map((name) => [columns[name], words[name].indexOf(filters[name].value)]);
  const verdict = filters.verdict.value;
  if (verdict) {
    const name = words.against.includes(verdict) ? "against" : "eval_status";
    wanted.push([columns[name], words[name].indexOf(verdict)]);
  }
  const low = filters.low.value === "" ? null : 1000 * Number(filters.low.value);
  const high = filters.high.value === "" ? null : 1000 * Number(filters.high.value);
  const text = filters.text.value.trim().toLowerCase();
  const tasks = text ? new Set(words.task_id.flatMap((task, index) => (task.toLowerCase().includes(text) ? [index] : []))) : null;
  const rows = book.all.filter(
    (row) =>
      wanted.every(([column, value]) => column[row] === value) &&
      (low === null || (columns.return[row] >= 0 && columns.return[row] >= low - 1e-6)) &&
      (high === null || (columns.return[row] >= 0 && columns.return[row] <= high + 1e-6)) &&
      (!tasks || tasks.has(columns.task_id[row]) || columns.id[row].startsWith(text)) &&
      (!filters.steps.checked || columns.block[row] >= 0),
  );
  if (book.sort) {
    const column = columns[book.sort];
    const sign = book.down ? -1 : 1;
    rows.sort((a, b) => sign * (column[a] - column[b]) || a - b);
  }
  return rows;
}

function show(afresh) {
  if (afresh) {
    book.rows = select();
    book.page = 0;
    means();
  }
  const pages = Math.max(1, Math.ceil(book.rows.length / PAGE));
  const shown = book.rows.slice(book.page * PAGE, (book.page + 1) * PAGE);
  document.querySelector("#list tbody").replaceChildren(...shown.map(line));
  const all = book.all.length.toLocaleString("en");
  document.getElementById("count").textContent = `${book.rows.length.toLocaleString("en")} of ${all} episodes`;
  document.getElementById("pages").textContent = `page ${book.page + 1} of ${pages.toLocaleString("en")}`;
  document.getElementById("earlier").disabled = book.page === 0;
  document.getElementById("later").disabled = book.page >= pages - 1;
}

function turn(by) {
  book.page += by;
  show(false);
}

function line(row) {
  const has = book.columns.block[row] >= 0;
  const cells = LIST.map(([title, , read]) => {
    const value = read(row);
    if (title === "task") {
      const name = make("button", { type: "button", class: has ? "open" : "open closed", "data-row": row, title: has ? "open this episode" : "its steps are not in this page", onclick: () => openEpisode(row) }, value);
      return make("td", {}, name, has ? "" : make("span", { class: "unit" }, " no steps here"));
    }
    if (title === "return") return make("td", { class: "number" }, fixed(value), bar("meter", value ?? 0));
    if (title === "maturity") return make("td", { class: "number" }, fixed(value));
    if (title === "against the reference") return make("td", { class: value === "same" ? "undecided" : value }, AGAINST[value] || "");
    if (NUMBERS.has(title)) return make("td", { class: "number" }, value === null ? "–" : value.toLocaleString("en"));
    return make("td", { class: value === "infra_missing" || value === "invalid" ? "bad" : "" }, value);
  });
  return make("tr", { "aria-current": book.opened === row ? "true" : null }, cells);
}

/** ↑ and ↓ go from episode to episode, and over the edge to the next page. */
function walk(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const buttons = () => [...document.querySelectorAll("#list .open")];
  const at = buttons().indexOf(document.activeElement) + step;
  if (at >= 0 && at < buttons().length) return buttons()[at].focus();
  const pages = Math.ceil(book.rows.length / PAGE);
  if (book.page + step < 0 || book.page + step >= pages) return undefined;
  turn(step);
  const next = buttons();
  return next[step > 0 ? 0 : next.length - 1].focus();
}

/** Plain means of the rows that are shown, by policy. */
function means() {
  const sums = new Map();
  for (const row of book.rows) {
    const policy = word("policy", row);
    if (!sums.has(policy)) sums.set(policy, { n: 0, return: [0, 0], maturity: [0, 0], steps: [0, 0], tokens: [0, 0] });
    const sum = sums.get(policy);
    sum.n += 1;
    for (const name of ["return", "maturity", "steps", "tokens"]) {
      const value = facts[name](row);
      if (value !== null) {
        sum[name][0] += value;
        sum[name][1] += 1;
      }
    }
  }
  const table = document.querySelector("#means table");
  const titles = ["policy", "episodes", "return", "maturity", "steps", "tokens"];
  table.tHead.replaceChildren(make("tr", {}, titles.map((title, i) => make("th", { scope: "col", class: i ? "number" : "" }, title))));
  const mean = ([sum, n], digits) => fixed(n ? sum / n : null, digits);
  table.tBodies[0].replaceChildren(
    ...[...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([policy, sum]) =>
      make("tr", {}, make("th", { scope: "row" }, policy), [sum.n.toLocaleString("en"), mean(sum.return, 3), mean(sum.maturity, 3), mean(sum.steps, 2), mean(sum.tokens, 0)].map((text) => make("td", { class: "number" }, text))),
    ),
  );
}

/** The steps of an episode, from its block. */
async function stepsOf(row) {
  const block = book.columns.block[row];
  if (block < 0) return null;
  if (!book.blocks.has(block)) book.blocks.set(block, await unpack(`block-${block}`));
  return book.blocks.get(block)[book.columns.place[row]];
}

/** The part of the address after # may name an episode, and one to put beside it. */
async function follow() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const find = (name) => book.all.find((row) => wanted.get(name) && book.columns.id[row] === wanted.get(name));
  const row = find("episode");
  if (row !== undefined && (row !== book.opened || find("beside") !== book.beside)) await openEpisode(row, find("beside"));
}
