// Charts over time: which position was written when, with which confidence, at which cost. Needs dom and canvases.

const MAP_HEIGHT = 150, LINE_HEIGHT = 110, LEFT = 38, RIGHT = 10, BOTTOM = 18, TOP = 8;

// Position × step of the row that becomes the answer, or so far the best. A cell is drawn from the step that wrote it.
class PositionMap {
  constructor(run, seek) {
    this.run = run;
    this.picture = h("canvas", { class: "map", role: "img", tabindex: -1 });
    this.words = h("p", { class: "note" });
    const caption = h("figcaption", null, "Position × step", legendOf("map"));
    this.frame = h("div", { class: "mapped" }, this.picture);
    [this.beats, this.places] = ["down", "along"].map((way) =>
      h("div", { class: `ticks ${way}`, "aria-hidden": "true" }));
    const ticked = h("div", { class: "ticked" }, this.beats, this.frame, this.places);
    this.figure = h("figure", null, caption, ticked, this.words);
    onDrag(this.picture, (event) => this.drag(event, seek));
  }

  drag(event, seek) {
    const box = this.picture.getBoundingClientRect();
    seek(Math.round((clamp(event.clientY - box.top, 0, box.height) / box.height) * this.run.last));
  }

  events() {
    const { run } = this, events = [];
    for (let number = run.last, row = run.leader(run.last); number > 0; number--) {
      const frame = run.frames[number];
      for (const write of frame.changes(row)) {
        const [, place, token, logp] = write;
        events.push({ number, place, masks: token === run.mask, restored: frame.restored.has(write), logp });
      }
      row = frame.source[row];
    }
    return events.reverse();
  }

  // The first, the middle and the last of the steps (or frames) and of the positions.
  drawTicks() {
    const { run } = this, all = run.slots.length;
    const label = (ticks, numbers) => ticks.replaceChildren(...numbers.map((number) => h("span", null, number)));
    label(this.beats, [0, Math.round(run.last / 2), run.last]);
    label(this.places, [...new Set([1, Math.round((all + 1) / 2), all])]);
  }

  draw() {
    this.drawTicks();
    const { run } = this, wide = this.picture.clientWidth || 600, ratio = devicePixelRatio || 1;
    Object.assign(this.picture, { width: wide * ratio, height: MAP_HEIGHT * ratio });
    const brush = this.picture.getContext("2d"), style = getComputedStyle(this.picture);
    const color = (name) => style.getPropertyValue(name).trim();
    const places = new Map(run.slots.map((place, index) => [place, index]));
    const dx = this.picture.width / run.slots.length, dy = this.picture.height / Math.max(1, run.last);
    const since = new Map(), events = this.events();
    brush.fillStyle = color("--written");
    const thick = Math.max(1, dx - (dx > 4 ? 1 : 0));
    const stay = (index, from, to) => brush.fillRect(index * dx, from * dy, thick, (to - from) * dy);
    for (const { number, place, masks } of events) {
      const index = places.get(place);
      if (since.has(index)) stay(index, since.get(index), number - 1);
      if (masks) since.delete(index);
      else since.set(index, number - 1);
    }
    for (const [index, from] of since) stay(index, from, run.last);
    let again = 0, wrote = 0;
    for (const { number, place, masks, restored, logp } of events) {
      const x = places.get(place) * dx, y = (number - 1) * dy, tall = Math.max(2 * ratio, dy);
      brush.fillStyle = color(masks ? "--again" : restored ? "--soft" : `--c${confidenceLevel(logp ?? -Infinity)}-ink`);
      if (masks) {
        again++;
        brush.strokeStyle = brush.fillStyle;
        brush.lineWidth = ratio;
        brush.strokeRect(x + 0.5 * ratio, y + 0.5 * ratio, Math.max(1, dx - 2 * ratio), Math.max(1, tall - ratio));
      } else {
        wrote++;
        brush.fillRect(x, y, thick, tall);
      }
    }
    const masked = again ? `, ${count(again, "position")} masked again` : "";
    const sentence = `Left to right: positions of the answer. Top to bottom: ${run.beat}s. ${count(wrote, "write")}${masked}.`;
    setText(this.words, sentence);
    this.picture.setAttribute("aria-label", `Position by step map. ${orderSentence(events)} ${sentence}`);
  }

  render(number) {
    this.frame.style.setProperty("--at", number / Math.max(1, this.run.last));
  }
}

function orderSentence(events) {
  const places = events.filter((event) => !event.masks).map((event) => event.place);
  let rising = 0;
  for (let i = 1; i < places.length; i++) rising += places[i] > places[i - 1];
  const share = rising / Math.max(1, places.length - 1);
  if (share > 0.9) return "Positions were written almost from left to right.";
  if (share > 0.6) return "Positions were written roughly from left to right.";
  return "Positions were written in no such order.";
}

// Lines over steps; a cursor shows the current one.
class LineChart {
  constructor(title, legend, seek) {
    this.title = title;
    this.picture = s("svg", { class: "lines", role: "img", preserveAspectRatio: "none" });
    this.cursor = s("line", { class: "cursor", y1: TOP, y2: LINE_HEIGHT - BOTTOM });
    this.figure = h("figure", null, h("figcaption", null, title, legend && legendOf(legend)), this.picture);
    onDrag(this.picture, (event) => seek(this.value(event)));
  }

  value(event) {
    const box = this.picture.getBoundingClientRect();
    return clamp((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT), 0, 1) * this.most;
  }

  x(value) {
    return LEFT + ((this.wide - LEFT - RIGHT) * value) / Math.max(1, this.most);
  }

  // `lines` are {name, points: [[x, y in 0…top]]}.
  draw(lines, most, top, axis, label) {
    this.wide = this.picture.clientWidth || 360;
    this.most = most;
    this.picture.setAttribute("viewBox", `0 0 ${this.wide} ${LINE_HEIGHT}`);
    this.picture.setAttribute("aria-label", label);
    const y = (value) => LINE_HEIGHT - BOTTOM - ((LINE_HEIGHT - BOTTOM - TOP) * value) / top;
    const grid = axis.ticks.map(([value, text]) => [
      s("line", { class: "grid", x1: LEFT, x2: this.wide - RIGHT, y1: y(value), y2: y(value) }),
      s("text", { x: LEFT - 5, y: y(value) + 3.5, class: "end" }, text),
    ]);
    const ends = [[0, "0", "start"], [most, `${most} ${axis.unit}`, "end"]].map(([value, text, anchor]) =>
      s("text", { x: this.x(value), y: LINE_HEIGHT - 4, class: anchor }, text));
    const paths = lines.map(({ name, points }) => {
      const places = points.map(([a, b]) => [this.x(a), y(b)]);
      return s("path", { class: `line ${name}`, d: name === "spent" ? stairs(places) : polyline(places) });
    });
    this.picture.replaceChildren(...grid.flat(), ...ends, ...paths, this.cursor);
  }

  render(value) {
    const x = this.x(value);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
  }
}

const at = (number) => number.toFixed(1);
const polyline = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${at(x)},${at(y)}`).join("");
const stairs = (points) => points.map(([x, y], i) => (i ? `H${at(x)}V${at(y)}` : `M${at(x)},${at(y)}`)).join("");

function legendOf(kind) {
  const entries = {
    map: [
      ["swatch wrote-sure", "written, sure"],
      ["swatch wrote-unsure", "written, unsure"],
      ["swatch written-later", "stays"],
      ["swatch again-box", "masked again"],
    ],
    confidence: [["stroke mean", "mean"], ["stroke least", "least"]],
  }[kind];
  const keys = entries.map(([name, text]) => h("span", null, h("i", { class: name }), text));
  return h("span", { class: "legend" }, ...keys);
}
