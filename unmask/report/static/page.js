"use strict";
// Texts come from models and are shown with textContent only: nothing in them is ever read as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("filters");
const list = document.getElementById("list");
const more = document.getElementById("more");
const PAGE = 100;
const OUTCOMES = {
  any: ["any", () => true],
  right: ["first right", (a) => a?.right === 1],
  wrong: ["first wrong", (a) => a?.right === 0],
  gained: ["only second right", (a, b) => a?.right === 0 && b?.right === 1],
  lost: ["only first right", (a, b) => a?.right === 1 && b?.right === 0],
  both: ["both right", (a, b) => a?.right === 1 && b?.right === 1],
  neither: ["both wrong", (a, b) => a?.right === 0 && b?.right === 0],
  differ: ["answers differ", (a, b) => a && b && a.answer !== b.answer],
  failed: ["failed", (a, b) => Boolean(a?.error || b?.error)],
};

const records = data.records.map((row) => Object.fromEntries(data.fields.map((name, i) => [name, row[i]])));
const units = gather();
let shown = [];
let drawn = 0;

function gather() {
  const found = new Map();
  for (const record of records) {
    const cell = data.cells[record.cell];
    const name = JSON.stringify([cell.model, cell.task, cell.length, record.problem, record.seed, record.sample]);
    if (!found.has(name)) found.set(name, { cell, problem: record.problem, seed: record.seed, sample: record.sample, by: new Map() });
    for (const label of cell.labels) found.get(name).by.set(label, record);
  }
  return [...found.values()];
}

function make(tag, text, kind) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (kind) node.className = kind;
  return node;
}

function fill(name, options, chosen) {
  const select = form.elements.namedItem(name); // .length is the collection's own
  select.replaceChildren(...options.map(([value, text]) => {
    const option = make("option", text);
    option.value = value;
    return option;
  }));
  select.value = options.some(([value]) => value === chosen) ? chosen : options[0][0];
}

function setUp() {
  const params = new URLSearchParams(location.hash.startsWith("#?") ? location.hash.slice(2) : "");
  const every = (values) => [["", "all"], ...values.map((value) => [String(value), String(value)])];
  const labels = data.labels.map((label) => [label, label]);
  fill("model", every(data.models), params.get("model") ?? "");
  fill("task", every(data.tasks), params.get("task") ?? "");
  fill("length", every(data.lengths), params.get("length") ?? "");
  fill("first", labels, params.get("first") ?? data.first);
  fill("second", [["", "none"], ...labels], params.get("second") ?? data.second);
  fill("outcome", Object.entries(OUTCOMES).map(([value, [text]]) => [value, text]), params.get("outcome") ?? "any");
  form.elements.search.value = params.get("search") ?? "";
  update(false);
  if (params.has("open")) list.querySelector("details")?.setAttribute("open", "");
  if (params.size) document.getElementById("explore").scrollIntoView();
}

function update(remember = true) {
  const want = Object.fromEntries(new FormData(form));
  const word = want.search.trim().toLowerCase();
  const fits = OUTCOMES[want.outcome][1];
  const has = (text) => text !== null && String(text).toLowerCase().includes(word);
  shown = units.filter((unit) => {
    if (want.model && unit.cell.model !== want.model) return false;
    if (want.task && unit.cell.task !== want.task) return false;
    if (want.length && String(unit.cell.length) !== want.length) return false;
    const a = unit.by.get(want.first), b = want.second ? unit.by.get(want.second) : undefined;
    if ((!a && !b) || !fits(a, b)) return false;
    if (!word) return true;
    return has(unit.problem) || [a, b].some((r) => r && (has(r.text) || has(r.answer) || has(r.error) || has(data.prompts[r.prompt])));
  });
  drawn = 0;
  list.replaceChildren();
  tell(want);
  extend();
  if (remember) {
    const kept = new URLSearchParams(Object.entries(want).filter(([, value]) => value));
    try { history.replaceState(null, "", `#?${kept}`); } catch { /* some viewers forbid it; filters work without */ }
  }
}

function tell(want) {
  const share = (label) => {
    const graded = shown.map((unit) => unit.by.get(label)).filter((record) => record && record.right !== null);
    const right = graded.filter((record) => record.right === 1).length;
    return graded.length ? `${label} right in ${right} of ${graded.length}` : `${label} not graded here`;
  };
  const parts = [want.first, want.second].filter(Boolean).map(share);
  document.getElementById("count").textContent = `${shown.length} of ${units.length} outputs: ${parts.join(", ")}`;
}

function extend() {
  const want = Object.fromEntries(new FormData(form));
  const part = document.createDocumentFragment();
  for (const unit of shown.slice(drawn, drawn + PAGE)) part.append(item(unit, want));
  list.append(part);
  drawn = Math.min(drawn + PAGE, shown.length);
  more.hidden = drawn >= shown.length;
  more.textContent = `Show more (${shown.length - drawn} left)`;
}

function verdict(record) {
  if (!record) return ["no output", "none"];
  if (record.error) return ["✗ failed", "bad"];
  if (record.right === null) return ["not graded", "none"];
  return record.right ? ["✓ right", "good"] : ["✗ wrong", "bad"];
}

function question(unit) {
  const record = [...unit.by.values()][0];
  const words = (record ? data.prompts[record.prompt] : "").trim().replace(/\s+/g, " ");
  return words.length > 90 ? `…${words.slice(-89)}` : words || unit.problem;
}

function item(unit, want) {
  const node = make("li"), details = make("details"), summary = make("summary");
  const again = unit.seed || unit.sample ? ` · seed ${unit.seed} · sample ${unit.sample}` : "";
  summary.append(make("span", question(unit), "id"), make("span", `${unit.problem} · ${unit.cell.model} · ${unit.cell.task} · L=${unit.cell.length}${again}`, "where"));
  for (const label of [want.first, want.second].filter(Boolean)) {
    const record = unit.by.get(label), [text, kind] = verdict(record);
    summary.append(make("span", record?.answer != null ? `${text}: ${record.answer}` : text, `tell ${kind}`));
  }
  details.append(summary);
  details.addEventListener("toggle", () => { if (details.open && details.childElementCount === 1) open(details, unit, want); });
  node.append(details);
  return node;
}

function open(details, unit, want) {
  const a = unit.by.get(want.first), b = want.second ? unit.by.get(want.second) : undefined;
  const promptNode = make("div", undefined, "prompt");
  promptNode.append(make("h3", "prompt"), make("pre", data.prompts[(a ?? b).prompt]));
  const sides = make("div", undefined, want.second ? "sides" : "sides one");
  const [left, right] = a && b ? differences(a.text, b.text) : [[[a?.text ?? "", false]], [[b?.text ?? "", false]]];
  sides.append(side(want.first, a, left));
  if (want.second) sides.append(side(want.second, b, right));
  details.append(promptNode, sides, ...player([a, b].filter((record) => record?.trace)));
}

// The command that plays the traces of these records, side by side.
function player(traced) {
  if (!traced.length) return [];
  const quoted = (path) => (/^[\w.\/-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);
  const paths = traced.map(({ trace: [folder, file] }) => quoted(`${data.folders[folder][1]}/${file}`));
  const node = make("p", "step by step: ", "note play");
  node.append(make("code", `unmask view --open ${[...new Set(paths)].join(" ")}`));
  return [node];
}

function side(label, record, pieces) {
  const node = make("div", undefined, "side"), [text, kind] = verdict(record);
  node.append(make("h3", label));
  if (!record) { node.append(make("p", "no output of this decoder here")); return node; }
  const line = make("p");
  line.append(make("span", text, kind), ` · answer ${record.answer === null ? "not found" : record.answer} · grade ${record.score ?? "–"} · ${record.forward_passes} forward passes · the decoder's own score ${record.likelihood === null ? "–" : record.likelihood.toFixed(3)}`);
  if (record.trace) {
    const link = make("a", "trace file");
    link.href = `${data.folders[record.trace[0]][0]}/${record.trace[1]}`;
    line.append(" · ", link);
  }
  node.append(line);
  if (record.error) node.append(make("p", record.error, "bad"));
  const body = make("pre");
  body.tabIndex = 0;
  body.setAttribute("aria-label", `output of ${label}`);
  for (const [piece, differs] of pieces) body.append(differs ? make("mark", piece) : piece);
  node.append(body);
  return node;
}

// Words of the longest common subsequence are plain, the others marked.
function differences(a, b) {
  const x = a.match(/\s+|\w+|[^\s\w]/gu) ?? [], y = b.match(/\s+|\w+|[^\s\w]/gu) ?? [];
  let head = 0, tail = 0;
  while (head < x.length && head < y.length && x[head] === y[head]) head++;
  while (tail < x.length - head && tail < y.length - head && x[x.length - 1 - tail] === y[y.length - 1 - tail]) tail++;
  const m = x.slice(head, x.length - tail), n = y.slice(head, y.length - tail);
  const same = m.length * n.length > 4e6 ? [new Set(), new Set()] : common(m, n);
  const pieces = (words, kept) => [[words.slice(0, head).join(""), false], ...words.slice(head, words.length - tail).map((word, i) => [word, !kept.has(i)]), [words.slice(words.length - tail).join(""), false]].filter(([word]) => word);
  return [pieces(x, same[0]), pieces(y, same[1])];
}

function common(m, n) {
  const wide = n.length + 1, best = new Uint16Array((m.length + 1) * wide);
  for (let i = m.length - 1; i >= 0; i--)
    for (let j = n.length - 1; j >= 0; j--)
      best[i * wide + j] = m[i] === n[j] ? best[(i + 1) * wide + j + 1] + 1 : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
  const left = new Set(), right = new Set();
  for (let i = 0, j = 0; i < m.length && j < n.length;) {
    if (m[i] === n[j]) { left.add(i++); right.add(j++); }
    else if (best[(i + 1) * wide + j] >= best[i * wide + j + 1]) i++;
    else j++;
  }
  return [left, right];
}

function step(by) {
  const all = [...list.querySelectorAll("summary")];
  const here = all.indexOf(document.activeElement?.closest("li")?.querySelector("summary"));
  if (here + by >= all.length && drawn < shown.length) { extend(); step(by); return; }
  all[Math.max(0, Math.min(all.length - 1, here + by))]?.focus();
}

function theme() {
  const button = document.getElementById("theme"), kinds = ["system", "light", "dark"];
  const use = (kind) => {
    if (kind === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = kind;
    button.textContent = `Theme: ${kind}`;
    try { localStorage.setItem("unmask-theme", kind); } catch { /* private windows */ }
  };
  let kind = "system";
  try { kind = localStorage.getItem("unmask-theme") ?? kind; } catch { /* private windows */ }
  use(kinds.includes(kind) ? kind : "system");
  button.addEventListener("click", () => use(kinds[(kinds.indexOf(button.textContent.slice(7)) + 1) % 3]));
}

let waiting;
form.addEventListener("input", (event) => {
  clearTimeout(waiting);
  waiting = setTimeout(update, event.target.name === "search" ? 150 : 0);
});
form.addEventListener("submit", (event) => { event.preventDefault(); update(); });
more.addEventListener("click", extend);
new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting) && !more.hidden) extend(); }, { rootMargin: "400px" }).observe(more);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  if (event.key === "/") { event.preventDefault(); form.elements.search.focus(); }
  if (event.key === "j") step(1);
  if (event.key === "k") step(-1);
});
theme();
setUp();
