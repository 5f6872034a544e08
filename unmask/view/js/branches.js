// The branches of a search in a table, kept and pruned, and two of them compared word by word.
// Needs dom, words and sentences.

const FEW_BRANCHES = 24;

// The candidates of the search at a frame, best first.
function candidatesAt(run, number) {
  const frame = run.frames[number], { branch } = frame, before = run.rows(number - 1), after = run.rows(number);
  const leader = run.leader(number), writes = branch.parent.map(() => []);
  for (const write of branch.writes) writes[write[0]].push(write);
  const list = branch.parent.map((parent, index) => {
    const tokens = before[parent].tokens.slice();
    for (const [, place, token] of writes[index]) tokens[place] = token;
    const places = writes[index].map((write) => write[1]);
    const same = () => after[leader].tokens.every((token, place) => token === tokens[place]);
    const leads = branch.kept[index] && frame.source[leader] === parent && same();
    const span = places.length ? tokens.slice(Math.min(...places), Math.max(...places) + 1) : [];
    return {
      name: `${number}/${index}`,
      from: `text ${run.frames[number - 1].thread[parent] + 1}, draw ${branch.draw[index] + 1}`,
      kept: branch.kept[index],
      leads,
      score: branch.score[index],
      blocks: branch.blocks[index],
      wrote: run.text(span) || END_SIGN,
      whole: run.text(branch.completion[index]),
    };
  });
  return ranked(oneLeader(list));
}

// Copies of the leading candidate were kept beside it.
function oneLeader(list) {
  const leader = ranked(list).find((entry) => entry.leads);
  return list.map((entry) => ({ ...entry, leads: entry === leader }));
}

// The rows up to a frame, of a decoder whose rows branch without being compared at once.
function textsAt(run, number) {
  const list = run.threads.filter((thread) => thread.born <= number).map((thread) => {
    const at = Math.min(thread.last, number), frame = run.frames[at], row = frame.thread.indexOf(thread.number);
    return {
      name: `text ${thread.number}`,
      from: thread.parent === null ? "the prompt" : `text ${thread.parent + 1}`,
      kept: thread.last >= number,
      leads: row === run.leader(at) && thread.last >= number, score: frame.score[row], blocks: [],
      wrote: originSentence(run, thread), whole: run.answer(run.rows(at)[row]), title: `text ${thread.number + 1}`,
    };
  });
  return ranked(list);
}

function ranked(list) {
  return list.map((entry, index) => [entry, index])
    .sort(([a, i], [b, j]) => (b.score ?? -Infinity) - (a.score ?? -Infinity) || i - j).map(([entry]) => entry);
}

// Where a row left its parent: the first token that differs.
function originSentence(run, thread) {
  if (thread.parent === null) return "the first text";
  const frame = run.frames[thread.born], row = frame.thread.indexOf(thread.number);
  const write = frame.changes(row).find((write) => write[2] !== run.mask);
  if (!write) return "drawn apart";
  const before = run.rows(thread.born - 1)[frame.source[row]].tokens[write[1]];
  const name = (token) => {
    if (token === run.mask) return "a mask";
    return run.eos.has(token) ? "the end of the text" : quoted(run.word(token), 16);
  };
  return `${name(write[2])} instead of ${name(before)} at position ${write[1] - run.first + 1}`;
}

class Branches {
  constructor(run) {
    this.run = run;
    this.caption = h("caption");
    this.body = h("tbody");
    this.more = h("button", { type: "button", class: "plain", onclick: () => this.toggle() });
    const region = { class: "sides", role: "region", "aria-label": "Two branches compared" };
    this.sides = h("div", region);
    const told = run.searches.length ? ["from", "what it wrote"] : ["text", "its answer", "from", "how it began"];
    const head = ["A", "B", "", "score", "by block", ...told];
    const names = head.map((name) =>
      h("th", { scope: "col", class: { "by block": "blocks", score: "number" }[name] || null },
        name || h("span", { class: "unseen" }, "outcome")));
    const table = h("table", { class: "branches" }, this.caption, h("thead", null, h("tr", null, ...names)), this.body);
    this.table = table;
    this.scroll = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Branches" }, table);
    this.element = h("div", null, this.scroll, this.more, h("h4", null, "A and B, word by word"), this.sides);
    [this.shown, this.all, this.names, this.picked] = ["", false, { A: null, B: null }, { A: false, B: false }];
  }

  render(number) {
    const { run } = this, searches = run.searches;
    const place = searches.length ? Math.max(0, lastAtMost(searches, number)) : null;
    const key = place === null ? `texts ${number}` : `search ${place}`;
    if (key === this.shown) return;
    this.shown = key;
    this.list = place === null ? textsAt(run, number) : candidatesAt(run, searches[place]);
    const kept = this.list.filter((entry) => entry.kept).length;
    const what = place === null
      ? `Texts up to step ${run.frames[number].step}`
      : `Search ${place + 1} of ${searches.length}, step ${run.frames[searches[place]].step}`;
    setText(this.caption, `${what}: ${kept} kept, ${this.list.length - kept} pruned`);
    this.propose();
    this.fill();
  }

  // Until a person picks: the branch that leads, and the best pruned one that reads otherwise.
  propose() {
    const { list, names, picked } = this, stays = (side) => picked[side] && this.entry(side);
    if (!stays("A")) names.A = (list.find((entry) => entry.leads) || list[0]).name;
    const others = list.filter((entry) => entry.whole !== this.entry("A").whole);
    const rival = others.find((entry) => !entry.kept) || others[0] || list.find((entry) => entry.name !== names.A);
    if (!stays("B")) names.B = (rival || list[0]).name;
  }

  entry(side) {
    return this.list.find((entry) => entry.name === this.names[side]);
  }

  toggle() {
    this.all = !this.all;
    this.fill();
  }

  fill() {
    const few = this.all ? this.list : this.list.slice(0, FEW_BRANCHES), group = newId("side");
    this.body.replaceChildren(...few.map((entry, index) => this.line(entry, index, group)));
    this.more.hidden = this.list.length <= FEW_BRANCHES;
    setText(this.more, this.all ? "Show the best only" : `Show all ${this.list.length}`);
    this.table.classList.toggle("plain", this.list.every((entry) => entry.blocks.length < 2));
    this.compare();
  }

  line(entry, index, group) {
    const choose = (side) => h("td", null, h("input", {
      type: "radio",
      name: `${group}-${side}`,
      "aria-label": `Compare as ${side}: branch ${index + 1}, ${entry.kept ? "kept" : "pruned"}`,
      checked: this.names[side] === entry.name,
      onchange: () => this.pick(side, entry),
    }));
    const outcome = entry.leads ? "★ leads" : entry.kept ? "● kept" : "× pruned";
    const blocks = entry.blocks.length > 1 ? entry.blocks.map((score) => show(score, 1)).join(" · ") : "—";
    const wrote = visible(shorten(entry.wrote, 400)).replaceAll("\n", " ↵ ");
    const text = entry.title ? [h("td", null, entry.title), h("td", { class: "wrote brief", dir: "auto" },
      shorten(visible(answerIn(entry.whole)), 60))] : [];
    return h("tr", { class: entry.leads ? "leads" : entry.kept ? "kept" : "pruned" },
      choose("A"), choose("B"), h("td", null, outcome), h("td", { class: "number" }, show(entry.score)),
      h("td", { class: "number blocks" }, blocks), ...text,
      h("td", null, entry.from), h("td", { class: "wrote", dir: "auto" }, wrote));
  }

  pick(side, entry) {
    this.names[side] = entry.name;
    this.picked[side] = true;
    this.compare();
  }

  compare() {
    const [a, b] = [this.entry("A"), this.entry("B")], words = compareWords(a.whole, b.whole);
    const outcome = (entry) => (entry.kept ? "kept" : "pruned");
    const facts = (entry) => [entry.title, outcome(entry), `score ${show(entry.score)}`].filter(Boolean).join(", ");
    const side = (entry, name, number) => h("div", null,
      h("p", { class: "note" }, `${name}: ${facts(entry)}`),
      h("p", { class: "text", dir: "auto" }, ...comparedSide(words, number)));
    const note = (text) => h("p", { class: "note across" }, text);
    if (a.name === b.name) return this.sides.replaceChildren(note("A and B are the same branch: choose another."));
    const same = a.whole === b.whole ? [note("A and B read the same.")] : [];
    return this.sides.replaceChildren(...same, side(a, "A", 1), side(b, "B", 2));
  }
}

// The rounds in which written positions were masked again: what was there, what came, and whether it stayed.
function repairRounds(run) {
  const rounds = [];
  for (let number = 1; number <= run.last; number++) {
    const frame = run.frames[number], threads = frame.thread;
    const lived = (row) => run.threads[threads[row]].born < number;
    const masked = frame.writes.filter((write) => write[2] === run.mask && lived(write[0]));
    if (!masked.length) continue;
    let end = number + 1;
    while (end < run.last && !run.frames[end].remasked && !isVerdict(run.frames[end], run.frames[end - 1])) end++;
    end = Math.min(end, run.last);
    const row = masked[0][0], was = run.rows(number - 1)[frame.source[row]];
    const now = run.rows(Math.max(number, end - 1))[row];
    const restored = run.frames[end].restored.size > 0;
    rounds.push({
      number, masked: masked.length, restored, open: end === run.last && !run.end,
      before: run.frames[number - 1].score[frame.source[row]],
      after: run.frames[end].score[row],
      was: run.answer(was),
      now: run.answer(restored ? now : run.rows(end)[row]),
    });
  }
  return rounds;
}

// Nothing was written: the rows were compared or restored.
function isVerdict(frame, before) {
  const judged = frame.score.some((score, row) => score !== before.score[frame.source[row]]);
  return !frame.written && (frame.writes.length > 0 || judged);
}

function roundItem(round, index) {
  const words = compareWords(round.was, round.now), same = round.was === round.now;
  const outcome = () => {
    if (round.open) return "it is under way";
    if (same) return "it wrote the same text again";
    if (round.restored) return "its text was not better and was taken back";
    return `its text was kept, score ${show(round.after)} after ${show(round.before)}`;
  };
  const side = (name, number) => h("div", null, h("p", { class: "note" }, name),
    h("p", { class: "text", dir: "auto" }, ...comparedSide(words, number)));
  const sentence = ` masked ${count(round.masked, "position")} again; ${outcome()}.`;
  return h("li", null, h("p", null, h("b", null, `Round ${index + 1}`), sentence),
    same ? null : h("div", { class: "sides" }, side("before", 1), side("after", 2)));
}
