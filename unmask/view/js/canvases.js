// The rows of a run as text: a span for every position, of which a step changes few. Needs dom and words.

const LEVELS = 6; // of shading
const GIVEN = 0, MASKED = 1, DRAFT = 2, WRITTEN = 3;
const STATES = ["given", "masked", "draft", "written"];
// Written from right to left.
const TURNED = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]|[\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const CONFIDENCE = [0.98, 0.9, 0.75, 0.5, 0.25]; // least probability of each level, from the surest

function confidenceLevel(logp) {
  const p = Math.exp(logp), level = CONFIDENCE.findIndex((least) => p >= least);
  return level < 0 ? LEVELS - 1 : level;
}

class Canvases {
  constructor(run, pick) {
    this.run = run;
    this.pick = pick; // told of a row and a position
    this.views = [];
    this.list = h("ol", { class: "rows" });
    this.near = new Set(); // rows on the screen or close to it
    this.seer = new IntersectionObserver((changes) => this.seen(changes), { rootMargin: "200px" });
    this.stale = new Map(); // by row off the screen, its pending update
  }

  seen(changes) {
    for (const { target, isIntersecting } of changes) {
      if (isIntersecting) this.near.add(target);
      else this.near.delete(target);
    }
    for (const view of this.stale.keys()) if (this.near.has(view.item)) this.catchUp(view);
  }

  catchUp(view) {
    const render = this.stale.get(view);
    this.stale.delete(view);
    if (render) render();
  }

  // Rows elsewhere are brought up to date when the clock rests.
  settle() {
    for (const view of this.stale.keys()) this.catchUp(view);
  }

  render(number, shade) {
    const frame = this.run.frames[number], rows = this.run.rows(number), leader = this.run.leader(number);
    while (this.views.length < rows.length) {
      const view = new RowView(this.run, this.views.length, this.pick);
      this.views.push(view);
      this.list.append(view.item);
      this.seer.observe(view.item);
    }
    const touched = frame.source.map(() => new Set());
    for (const [row, place] of frame.writes) touched[row].add(place);
    this.views.forEach((view, index) => {
      view.item.hidden = index >= rows.length;
      if (index >= rows.length) return;
      view.title(frame, number, index === leader, index);
      this.stale.set(view, () => view.render(rows[index], touched[index], shade));
      if (this.near.has(view.item)) this.catchUp(view);
    });
  }
}

class RowView {
  constructor(run, number, pick) {
    Object.assign(this, { run, number, pick, place: run.first });
    this.name = h("span", { class: "name" });
    this.note = h("span", { class: "note" });
    this.score = h("span", { class: "score" });
    this.bar = h("span", { class: "filled" }, h("i"));
    this.text = h("p", { class: "canvas", tabindex: 0, role: "group", dir: "auto" });
    const gutter = h("div", { class: "gutter" }, this.name, this.note, this.bar, this.score);
    this.item = h("li", { class: "row" }, gutter, this.text);
    this.cells = [];
    this.seen = new Int32Array(run.width).fill(-1); // what each cell shows: token, state and level in one number
    this.tokens = new Int32Array(run.width).fill(-2);
    for (let place = run.first; place < run.width; place++) {
      const cell = document.createElement("span");
      this.cells[place] = cell;
      this.text.append(cell);
    }
    this.text.addEventListener("click", (event) => this.clicked(event));
    this.text.addEventListener("keydown", (event) => this.moved(event));
  }

  title(frame, number, leads, index) {
    const { run } = this, thread = run.threads[frame.thread[index]];
    const branched = number > 0 && thread.born === number;
    this.item.classList.toggle("leads", leads);
    const ends = run.end !== null, done = ends && number === run.last;
    const lead = done ? "★ the answer" : ends ? "★ becomes the answer" : "★ leads";
    const notes = [leads ? lead : "", branched ? `from text ${thread.parent + 1}` : ""];
    setText(this.name, `Text ${thread.number + 1}`);
    setText(this.note, notes.filter(Boolean).join(" · "));
    setText(this.score, number && run.compares ? `score ${show(frame.score[index])}` : "");
  }

  render(row, touched, shade) {
    const { run } = this;
    const steps = Math.max(1, run.frames.at(-1).step), shades = { confidence: 1, step: 2 }[shade] || 0;
    let masks = 0;
    for (let place = run.first; place < run.width; place++) {
      const token = row.tokens[place];
      let state = WRITTEN, level = 0, shown = token;
      if (token === run.mask) {
        masks++;
        const draft = row.drafts[place];
        [state, shown] = draft >= 0 ? [DRAFT, draft] : [MASKED, token];
      } else if (row.order[place] === 0) state = GIVEN;
      else if (shade === "confidence") level = confidenceLevel(row.logp[place]);
      else if (shade === "step") level = Math.min(LEVELS - 1, Math.floor((LEVELS * (row.order[place] - 1)) / steps));
      const now = touched.has(place) ? 1 : 0, unsure = state === WRITTEN && row.logp[place] < -0.6931 ? 1 : 0;
      const look = (((state * LEVELS + level) * 2 + now) * 2 + unsure) * 3 + shades;
      if (this.seen[place] === look && this.tokens[place] === shown) continue;
      this.cells[place].className = this.classes(state, level, now, unsure, shade, shown);
      this.seen[place] = look;
      if (this.tokens[place] !== shown) {
        this.tokens[place] = shown;
        const word = run.eos.has(shown) ? END_SIGN : tokenText(run.word(shown));
        this.cells[place].textContent = state === MASKED ? MASK_SIGN : word;
      }
    }
    const all = run.slots.length, share = Math.round((100 * (all - masks)) / all);
    this.bar.firstChild.style.width = `${share}%`;
    this.text.setAttribute("aria-label", `${this.name.textContent}: ${all - masks} of ${count(all, "position")} written`);
  }

  classes(state, level, now, unsure, shade, token) {
    const words = [STATES[state]];
    if (state === WRITTEN && shade !== "nothing") words.push(`${shade[0]}${level}`);
    if (unsure) words.push("unsure");
    if (now) words.push(state === WRITTEN ? "new" : "again");
    if (this.run.eos.has(token)) words.push("end");
    if (TURNED.test(this.run.word(token))) words.push("turned");
    return words.join(" ");
  }

  clicked(event) {
    const place = this.cells.indexOf(event.target);
    if (place >= 0) this.choose(place);
  }

  moved(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 8, ArrowUp: -8 }[event.key];
    const ends = { Home: this.run.first, End: this.run.width - 1 };
    const to = ends[event.key] ?? (by ? this.place + by : null);
    if (to === null || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.choose(clamp(to, this.run.first, this.run.width - 1));
  }

  choose(place) {
    this.place = place;
    this.pick(this.number, place);
  }
}

// The history of a position of a row up to a frame, a sentence for each event.
function tokenHistory(run, number, row, place) {
  const sentences = [];
  for (let at = number, here = row; at > 0; at--) {
    const frame = run.frames[at];
    const write = frame.writes.find((write) => write[0] === here && write[1] === place);
    if (write) sentences.push(writeSentence(run, frame, write));
    here = frame.source[here];
  }
  return sentences.reverse();
}

function writeSentence(run, frame, write) {
  const [, , token, logp, order] = write;
  if (token === run.mask) return `step ${frame.step}: masked again`;
  const word = run.eos.has(token) ? `${END_SIGN} (end of text)` : quoted(run.word(token));
  if (frame.restored.has(write)) return `step ${frame.step}: back to ${word} of step ${order}`;
  return `step ${order ?? frame.step}: ${word} written, probability ${percent(Math.exp(logp ?? -Infinity))}`;
}
