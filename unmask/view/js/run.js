// A run: the lines of its trace, read one by one, and its rows at any of its frames. Needs nothing.

const SPACING = 16; // frames between two whose rows are stored

class Row {
  constructor(tokens, order, logp, drafts) {
    Object.assign(this, { tokens, order, logp, drafts });
  }

  static blank(tokens) {
    const width = tokens.length;
    const drafts = new Int32Array(width).fill(-1);
    return new Row(Int32Array.from(tokens), new Int32Array(width), new Float32Array(width), drafts);
  }

  copy() {
    return new Row(this.tokens.slice(), this.order.slice(), this.logp.slice(), this.drafts.slice());
  }
}

class Run {
  constructor(header, label) {
    this.header = header;
    this.label = label || header.decoder;
    this.mask = header.mask;
    this.eos = new Set(header.eos);
    this.words = { ...header.words };
    this.blank = [...header.ids, ...Array(header.length).fill(header.mask)];
    this.width = this.blank.length;
    this.slots = this.blank.flatMap((token, place) => (token === header.mask ? [place] : []));
    const whole = this.slots.length && this.width - this.slots[0] === this.slots.length;
    this.first = whole ? this.slots[0] : 0; // the first position that is shown: the prompt has a place of its own
    this.frames = [new Frame({ step: 0, source: [0], writes: [], score: [0], forward_passes: 0 })];
    this.frames[0].thread = [0];
    this.threads = [{ number: 0, parent: null, born: 0, last: 0, lane: 0 }];
    this.wholes = [[Row.blank(this.blank)]]; // the rows of every SPACING-th frame
    this.tip = this.wholes[0];
    this.end = null;
    this.cached = { frame: 0, rows: this.tip };
  }

  add(line) {
    const before = this.frames.at(-1), frame = new Frame(line);
    Object.assign(this.words, line.words);
    if (frame.idle(before)) return; // it waited for other problems of its batch
    this.tip = frame.applied(this.tip, this);
    this.frames.push(frame);
    if ((this.frames.length - 1) % SPACING === 0) this.wholes.push(this.tip);
    this.follow(before, frame);
  }

  // A row goes on as the first row that was made from it; the others branch off.
  follow(before, frame) {
    const taken = new Set(), number = this.frames.length - 1;
    frame.thread = frame.source.map((source) => {
      const parent = before.thread[source];
      if (!taken.has(parent)) {
        taken.add(parent);
        return parent;
      }
      this.threads.push({ number: this.threads.length, parent, born: number, last: number, lane: 0 });
      return this.threads.length - 1;
    });
    for (const thread of frame.thread) this.threads[thread].last = number;
  }

  finish(end) {
    this.end = end;
    Object.assign(this.words, end.words);
    const lineage = [end.chosen];
    for (let number = this.last; number > 0; number--) lineage.push(this.frames[number].source[lineage.at(-1)]);
    this.lineage = lineage.reverse(); // at each frame, the row that becomes the answer
    this.answers = new Set(this.lineage.map((row, number) => this.frames[number].thread[row]));
  }

  get last() {
    return this.frames.length - 1;
  }

  // A step takes several frames where rows are also compared, restored or started.
  get beat() {
    return this.frames.at(-1).step === this.last ? "step" : "frame";
  }

  get spent() {
    return this.frames.map((frame) => frame.passes);
  }

  // The rows after a frame, computed from the last frame that was asked for or from the nearest stored one.
  rows(number) {
    let from = number - (number % SPACING), rows = this.wholes[number / SPACING | 0];
    if (this.cached.frame <= number && this.cached.frame >= from) [from, rows] = [this.cached.frame, this.cached.rows];
    for (let next = from + 1; next <= number; next++) rows = this.frames[next].applied(rows, this);
    this.cached = { frame: number, rows };
    return rows;
  }

  // The row that stands for the run at a frame: the one that becomes the answer, or so far the best.
  leader(number) {
    if (this.lineage) return this.lineage[number];
    const score = this.frames[number].score;
    return score.reduce((best, value, row) => ((value ?? -Infinity) > (score[best] ?? -Infinity) ? row : best), 0);
  }

  get searches() {
    return this.frames.flatMap((frame, number) => (frame.branch ? [number] : []));
  }

  // Whether texts were compared with each other: only then does a score decide anything.
  get compares() {
    return this.threads.length > 1 || this.frames.some((frame) => frame.branch || frame.remasked);
  }

  word(token) {
    const text = this.words[token];
    return text === undefined ? `‹${token}›` : text;
  }

  // The answer of some slots' tokens, up to the end of the text.
  text(tokens) {
    const words = [];
    for (const token of tokens) {
      if (this.eos.has(token)) break;
      words.push(token === this.mask ? "░" : this.word(token));
    }
    return words.join("");
  }

  answer(row) {
    return this.text(this.slots.map((place) => row.tokens[place]));
  }
}

class Frame {
  constructor(line) {
    this.step = line.step;
    this.source = line.source;
    this.writes = line.writes;
    this.drafts = line.drafts || [];
    this.score = line.score;
    this.passes = line.forward_passes; // forward passes up to this frame
    this.branch = line.branch || null;
    this.remasked = 0;
    this.written = 0;
    this.mean = this.least = null; // probability of what this step wrote
    this.restored = new Set(); // writes that put back what an earlier step had written
  }

  idle(before) {
    const same = (a, b) => a.length === b.length && a.every((value, index) => value === b[index]);
    const still = same(this.source, before.source.map((_, row) => row)) && same(this.score, before.score);
    return still && this.passes === before.passes && !this.writes.length && !this.drafts.length && !this.branch;
  }

  applied(rows, run) {
    const next = this.source.map((source) => rows[source]), own = new Set();
    const owned = (row) => {
      if (!own.has(row)) next[row] = next[row].copy();
      own.add(row);
      return next[row];
    };
    const masking = new Set(this.writes.filter((write) => write[2] === run.mask).map((write) => write[0]));
    let sum = 0, least = 1, written = 0, remasked = 0;
    this.restored.clear();
    for (const write of this.writes) {
      const [number, place, token, logp, order] = write, row = owned(number), masks = token === run.mask;
      if (order != null && row.tokens[place] !== run.mask && !masking.has(number)) this.restored.add(write);
      row.tokens[place] = token;
      row.logp[place] = logp ?? -Infinity;
      row.order[place] = masks ? 0 : order ?? this.step;
      row.drafts[place] = -1;
      if (masks) remasked++;
      else if (!this.restored.has(write)) {
        const p = Math.exp(logp ?? -Infinity);
        [sum, least, written] = [sum + p, Math.min(least, p), written + 1];
      }
    }
    for (const [number, place, token] of this.drafts) owned(number).drafts[place] = token;
    Object.assign(this, { written, remasked, mean: written ? sum / written : null, least: written ? least : null });
    return next;
  }

  // [position, token or mask] that changed in a row of this frame.
  changes(row) {
    return this.writes.filter((write) => write[0] === row);
  }
}
