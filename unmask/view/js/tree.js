// The tree of texts: a lane for every text, from where it left its parent to where it was pruned.
// Needs dom, words and sentences.

const LANE = 26, TREE_TOP = 14, AXIS = 20;
const LABEL = { narrow: 124, wide: 270, from: 800 }; // width of the labels, by the width of the tree

// A lane is used again once its row is gone.
function layLanes(run) {
  const free = [];
  let lanes = 0;
  for (const thread of run.threads) {
    const place = free.findIndex((entry) => entry.until < thread.born);
    thread.lane = place < 0 ? lanes++ : free[place].lane;
    const entry = { lane: thread.lane, until: thread.last };
    if (place < 0) free.push(entry);
    else free[place] = entry;
  }
  return lanes;
}

class Tree {
  constructor(run, seekPasses) {
    this.run = run;
    this.picture = s("svg", { class: "tree", role: "img" });
    this.cursor = s("line", { class: "cursor" });
    const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": "The tree of texts" };
    this.figure = h("figure", region, this.picture);
    onDrag(this.picture, (event) => {
      const x = event.clientX - this.picture.getBoundingClientRect().left - 8;
      seekPasses(clamp(x / this.scale, 0, this.most));
    });
  }

  draw(most) {
    const { run } = this, wide = Math.max(300, this.figure.clientWidth || 560);
    this.most = most;
    this.roomy = wide >= LABEL.from;
    this.scale = (wide - (this.roomy ? LABEL.wide : LABEL.narrow) - 8) / Math.max(1, most);
    const lanes = layLanes(run), low = TREE_TOP * 2 + lanes * LANE, tall = low + AXIS;
    this.shared = lanes < run.threads.length;
    this.picture.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
    this.picture.setAttribute("width", wide);
    this.picture.setAttribute("height", tall);
    this.picture.setAttribute("aria-label", treeSentence(run));
    const drawn = run.threads.map((thread) => this.thread(thread));
    const lines = drawn.map(([path]) => path), signs = drawn.flatMap(([, ...rest]) => rest);
    const fans = run.searches.flatMap((number) => this.fan(number));
    const again = run.frames.flatMap((frame, number) => this.again(frame, number));
    this.picture.replaceChildren(
      ...fans, ...this.axis(low), ...lines, this.answerPath(), this.cursor, ...signs, ...again);
    this.cursor.setAttribute("y1", 0);
    this.cursor.setAttribute("y2", low);
  }

  get end() {
    return 8 + this.most * this.scale;
  }

  axis(y) {
    const { end } = this;
    return [s("line", { class: "grid", x1: 8, x2: end, y1: y, y2: y }), s("text", { x: 8, y: y + 14 }, "0"),
      s("text", { x: end, y: y + 14, class: "end" }, count(this.most, "forward pass"))];
  }

  x(number) {
    return 8 + this.run.frames[number].passes * this.scale;
  }

  y(thread) {
    return TREE_TOP + (this.run.threads[thread].lane + 0.5) * LANE;
  }

  thread(thread) {
    const { run } = this, ended = thread.last < run.last, final = !ended && run.end !== null;
    const y = this.y(thread.number), born = this.x(thread.born), until = this.x(thread.last);
    const kind = ended ? "pruned" : "alive", end = Math.max(until, born);
    const path = s("path", { class: `lane ${kind}`, d: `${this.start(thread)}H${end}` });
    const last = run.frames[thread.last], row = last.thread.indexOf(thread.number);
    const chosen = final && row === run.end.chosen;
    const mark = chosen ? "★" : ended ? "×" : "●";
    const sign = s("text", { class: `sign ${chosen ? "answer" : kind}`, x: end, y: y + 4 }, mark);
    const words = ended && (this.shared || !this.roomy) ? "" : this.label(thread, row);
    const label = s("text", { class: chosen ? "name answer" : "name", x: this.end + 12, y: y + 4 }, words);
    return [path, sign, label];
  }

  // Which text it is, its score, and its answer where there is room.
  label(thread, row) {
    const { run } = this, words = [`text ${thread.number + 1}`, show(run.frames[thread.last].score[row])];
    if (this.roomy && run.end) words.push(shorten(visible(answerIn(run.answer(run.rows(thread.last)[row]))), 30));
    return words.join(" · ");
  }

  // The way from a thread's parent to its own lane.
  start(thread) {
    const y = this.y(thread.number);
    if (thread.parent === null) return `M8,${y}`;
    const from = this.x(thread.born - 1), above = this.y(thread.parent);
    const to = Math.max(this.x(thread.born), from + 6), middle = (from + to) / 2;
    return `M${from},${above}C${middle},${above} ${middle},${y} ${to},${y}`;
  }

  // Along the rows that became the answer.
  answerPath() {
    const { run } = this, threads = (run.lineage || []).map((row, number) => run.frames[number].thread[row]);
    const parts = threads.map((thread, number) => {
      const enters = number && thread !== threads[number - 1];
      const start = number === 0 ? `M8,${this.y(thread)}` : enters ? this.start(run.threads[thread]) : "";
      return `${start}H${this.x(number)}`;
    });
    return s("path", { class: "lane answer", d: parts.join("") || "M0,0" });
  }

  // The candidates of a search that were pruned at once.
  fan(number) {
    const { run } = this, { branch } = run.frames[number], before = run.frames[number - 1], marks = [];
    const losers = new Map();
    branch.kept.forEach((kept, index) => {
      if (!kept) losers.set(branch.parent[index], (losers.get(branch.parent[index]) || 0) + 1);
    });
    for (const [row, lost] of losers) {
      const x = this.x(number - 1), y = this.y(before.thread[row]);
      const reach = Math.min(14, Math.max(5, this.x(number) - x));
      for (let i = 0; i < Math.min(lost, 6); i++) {
        const dy = (i - (Math.min(lost, 6) - 1) / 2) * 4;
        marks.push(s("path", { class: "stub", d: `M${x},${y}L${x + reach},${y + dy}` }));
      }
      if (run.searches.length <= 16) marks.push(s("text", { class: "lost", x: x + reach + 2, y: y - 5 }, `${lost}×`));
    }
    return marks;
  }

  again(frame, number) {
    if (!frame.remasked) return [];
    const rows = new Set(frame.writes.filter((write) => write[2] === this.run.mask).map((write) => write[0]));
    return [...rows].filter((row) => this.run.threads[frame.thread[row]].born < number).map((row) =>
      s("text", { class: "sign again", x: this.x(number), y: this.y(frame.thread[row]) - 5 }, "↺"));
  }

  render(passes) {
    const x = 8 + passes * this.scale;
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
  }
}

function treeSentence(run) {
  const ended = run.threads.filter((thread) => thread.last < run.last).length;
  const candidates = run.searches.reduce((sum, number) => sum + run.frames[number].branch.parent.length, 0);
  const compared = `${count(run.searches.length, "search")} compared ${count(candidates, "candidate")}`;
  const searches = candidates ? ` ${compared}.` : "";
  const lived = `${count(run.threads.length, "text")}, ${ended} of them pruned`;
  return `Tree of texts: ${lived}.${searches} The tables below list them.`;
}
