// Runs over time: their canvases side by side at equal cost, charts, the tree, branches and repairs.
// Needs dom, words, canvases, charts, tree, branches, sentences and player.

const LEGEND = [
  ["given", "given"], ["masked", "masked"], ["draft", "draft"], ["written c0", "written"],
  ["written c0 new", "just written"], ["masked again", "masked again"], ["written c4 unsure", "below 50%"],
  ["end", "end of text"],
];

// What the shades mean, in words at both ends.
function scaleOf(shade) {
  const ends = { confidence: ["sure", "unsure"], step: ["first", "last"] }[shade];
  if (!ends) return [];
  const shades = Array.from({ length: LEVELS }, (_, level) => h("i", { class: `${shade[0]}${level}` }));
  return [ends[0], h("span", { "aria-hidden": "true" }, ...shades), ends[1]];
}

const BRANCHES_NOTE = "Each line is a text, from where it branched off to its end: ★ the answer, ● kept, "
  + "× pruned, ↺ masked again. The number is its score, a log probability: higher is better.";
const EQUAL = " The cost is counted in forward passes of one text. A run that is done waits for the others.";
const REST = 90; // milliseconds without a change

class Viewer {
  constructor(runs) {
    this.runs = runs;
    this.shade = "confidence";
    this.picked = null;
    this.player = new Player((tick, person) => this.render(tick, person));
    this.panels = runs.map((run) => new Panel(run, this));
    this.inspector = h("p", { class: "inspector", role: "status" }, "Choose a token to read its history.");
    const articles = this.panels.map((panel) => panel.element);
    const panels = h("div", { class: runs.length > 1 ? "panels two" : "panels" }, ...articles);
    this.element = h("div", { class: "viewer" }, this.tools(), panels,
      ...this.panels.map((panel) => panel.more), this.player.bar);
    this.refresh();
  }

  tools() {
    const scale = h("p", { class: "scale" });
    const choose = () => {
      this.shade = shade.value;
      scale.replaceChildren(...scaleOf(this.shade));
      this.render(this.player.tick, false);
    };
    scale.append(...scaleOf(this.shade));
    const shade = h("select", { onchange: choose },
      ...["confidence", "step", "nothing"].map((name) => h("option", { value: name }, name)));
    const seen = (test) => this.runs.some((run) => !run.end || run.frames.some(test));
    const some = {
      given: this.runs.some((run) => run.first === 0),
      draft: seen((frame) => frame.drafts.length),
      "masked again": seen((frame) => frame.remasked),
    };
    const legend = LEGEND.filter(([name]) => some[name] ?? true);
    const signs = { masked: MASK_SIGN, "masked again": MASK_SIGN, end: END_SIGN };
    const equal = this.runs.length > 1 ? h("p", { class: "equal" },
      h("b", null, "Side by side at equal cost."), EQUAL) : null;
    return h("div", { class: "tools" }, equal, h("label", null, "Shade by ", shade), scale,
      h("ul", { class: "key", "aria-label": "Legend" },
        ...legend.map(([name, text]) =>
          h("li", null, h("span", { class: `canvas ${name}` }, signs[name] || "word"), text))),
      this.inspector);
  }

  // After lines have been added.
  refresh() {
    const spent = this.runs.map((run) => run.spent);
    this.most = Math.max(...spent.map((passes) => passes.at(-1)));
    this.spent = spent;
    this.ticks = this.runs.length > 1 ? [...new Set(spent.flat())].sort((a, b) => a - b) : spent[0];
    this.player.resize(this.ticks.length);
    for (const panel of this.panels) panel.refresh(this.most);
  }

  frames(tick) {
    return this.runs.length > 1 ? this.spent.map((passes) => Math.max(0, lastAtMost(passes, this.ticks[tick]))) : [tick];
  }

  // After the width or the colours of the page changed.
  redraw() {
    for (const panel of this.panels) panel.drawn = false;
    this.render(this.player.tick, false);
  }

  // The tick at which a run shows a frame.
  tickOf(index, number) {
    return this.runs.length > 1 ? Math.max(0, lastAtMost(this.ticks, this.spent[index][number])) : number;
  }

  seekPasses(passes) {
    this.player.go(Math.max(0, lastAtMost(this.ticks, Math.round(passes))));
  }

  render(tick, person) {
    const numbers = this.frames(tick), passes = this.ticks[tick];
    this.panels.forEach((panel, index) => panel.render(numbers[index], this.shade, passes));
    clearTimeout(this.resting);
    this.element.setAttribute("aria-busy", "true");
    this.resting = setTimeout(() => this.settle(), REST);
    this.player.tell(`${tickSentence(this.runs, numbers)} · ${count(passes, "forward pass")}`, person);
    if (this.picked) this.inspect(...this.picked);
  }

  // Slow updates wait until the clock rests.
  settle() {
    for (const panel of this.panels) panel.settle();
    this.element.setAttribute("aria-busy", "false");
  }

  pick(panel, row, place) {
    this.picked = [panel, row, place];
    this.inspect(panel, row, place);
  }

  inspect(panel, row, place) {
    for (const each of this.panels) each.point(each === panel ? row : -1, place);
    const sentences = tokenHistory(panel.run, panel.number, row, place);
    const given = panel.run.blank[place] === panel.run.mask ? "still a mask" : "given";
    const where = `Text ${panel.run.frames[panel.number].thread[row] + 1}, position ${place - panel.run.first + 1}`;
    setText(this.inspector, `${where}: ${sentences.length ? sentences.join("; ") : given}.`);
  }
}

class Panel {
  constructor(run, viewer) {
    Object.assign(this, { run, viewer, number: 0, pointed: null });
    const index = viewer.runs.indexOf(run), id = newId("run");
    const seek = (number) => viewer.player.go(viewer.tickOf(index, number));
    this.title = h("h2", { id }, run.label);
    this.badge = h("p", { class: "badge" });
    this.canvases = new Canvases(run, (row, place) => viewer.pick(this, row, place));
    this.map = new PositionMap(run, seek);
    const title = "Confidence of what each step wrote";
    this.confidence = new LineChart(title, "confidence", (value) => seek(Math.round(value)));
    this.cost = new LineChart("Forward passes", null, (value) => seek(Math.round(value)));
    this.tree = new Tree(run, (passes) => viewer.seekPasses(passes));
    this.branches = new Branches(run);
    this.rounds = h("ol", { class: "rounds" });
    this.final = h("div", { class: "final" });
    const of = viewer.runs.length > 1 ? `: ${run.label}` : "";
    this.search = h("section", { hidden: true }, h("h3", null, `Branches${of}`),
      h("p", { class: "note" }, BRANCHES_NOTE),
      this.tree.figure, this.branches.element);
    this.repair = h("section", { hidden: true }, h("h3", null, `Repairs${of}`), this.rounds);
    this.more = h("div", { class: "panel more" }, this.search, this.repair);
    const charts = h("section", { class: "charts" }, h("h3", { class: "unseen" }, "Charts"),
      this.map.figure, this.confidence.figure, this.cost.figure);
    this.element = h("article", { class: "panel", "aria-labelledby": id },
      h("header", null, this.title, this.badge), this.final, this.canvases.list, charts);
  }

  refresh(most) {
    const { run } = this;
    this.most = most;
    this.search.hidden = !run.searches.length && run.threads.length < 2;
    this.branches.shown = "";
    if (run.end) this.conclude();
    this.more.hidden = this.search.hidden && this.repair.hidden;
    this.drawn = false;
  }

  conclude() {
    const { run } = this, grade = gradeOf(run), rounds = repairRounds(run);
    const answer = visible(run.end.texts[run.end.chosen]).trim().replaceAll("\n", " ↵ ") || "(nothing)";
    const verdict = grade ? verdictOf(grade) : null;
    const note = h("span", { class: "note" }, "Answer ");
    this.final.replaceChildren(h("p", { class: "answer", dir: "auto" }, note, answer, verdict));
    this.repair.hidden = !rounds.length;
    this.rounds.replaceChildren(...rounds.map(roundItem));
  }

  charts() {
    const { run } = this, { frames } = run;
    if (this.drawn) return;
    this.drawn = true;
    this.map.draw();
    if (!this.search.hidden) this.tree.draw(this.most);
    const points = (name) => frames.flatMap((frame, number) => (frame[name] === null ? [] : [[number, frame[name]]]));
    const least = Math.min(1, ...points("least").map((point) => point[1]));
    const lines = ["mean", "least"].map((name) => ({ name, points: points(name) })), unit = `${run.beat}s`;
    this.confidence.draw(lines, run.last, 1, { unit, ticks: [[0, "0%"], [0.5, "50%"], [1, "100%"]] },
      `Mean and least probability of the tokens written at each step; the least of all is ${percent(least)}.`);
    const top = Math.max(1, this.most), half = Math.round(top / 2);
    this.cost.draw([{ name: "spent", points: frames.map((frame, number) => [number, frame.passes]) }], run.last, top,
      { unit, ticks: [[0, "0"], [half, `${half}`], [top, `${top}`]] }, `Forward passes: ${frames.at(-1).passes} in all.`);
  }

  render(number, shade, passes) {
    this.number = number;
    const frame = this.run.frames[number], done = this.run.end && number === this.run.last;
    this.canvases.render(number, shade);
    this.charts();
    this.map.render(number);
    this.confidence.render(number);
    this.cost.render(number);
    if (!this.search.hidden) this.tree.render(Math.min(passes, this.run.frames.at(-1).passes));
    const grade = done ? gradeOf(this.run) : null;
    const facts = [count(frame.passes, "forward pass"), count(frame.source.length, "text")];
    if (done) facts.push("done");
    this.badge.replaceChildren(facts.join(" · "), ...(grade ? [" · ", verdictOf(grade)] : []));
    this.element.classList.toggle("done", Boolean(done));
    this.final.classList.toggle("later", !done);
  }

  settle() {
    this.canvases.settle();
    if (!this.search.hidden) this.branches.render(this.number);
  }

  point(row, place) {
    if (this.pointed) this.pointed.classList.remove("picked");
    this.pointed = row < 0 ? null : this.canvases.views[row].cells[place];
    if (this.pointed) this.pointed.classList.add("picked");
  }
}
