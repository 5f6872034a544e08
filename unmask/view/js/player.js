// The clock of a page: its ticks, and the bar that plays, steps and scrubs them. Needs dom.

const WHOLE = 14000, FASTEST = 40, SLOWEST = 450; // milliseconds: a whole run, a tick

const ICONS = {
  play: "M7 4v16l13-8z",
  pause: "M6 4h4v16H6zM14 4h4v16h-4z",
  first: "M5 5h3v14H5zM20 5v14L9 12z",
  last: "M16 5h3v14h-3zM4 5v14l11-7z",
  back: "M17 5v14L6 12z",
  on: "M7 5v14l11-7z",
};

function icon(name) {
  return s("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, s("path", { d: ICONS[name] }));
}

const PACES = [[0.25, "¼×"], [0.5, "½×"], [1, "1×"], [2, "2×"], [4, "4×"]];

class Player {
  constructor(render) {
    this.render = render; // told of a tick, and whether a person asked for it
    this.ticks = 1;
    this.tick = 0;
    this.timer = null;
    this.speed = 1;
    this.held = false; // whether a person chose where to look, and not the end
    const button = (label, sign, act, key) =>
      h("button", { type: "button", "aria-label": label, title: `${label} (${key})`, onclick: act }, icon(sign));
    this.playButton = button("Play", "play", () => this.toggle(), "space");
    const seek = () => this.go(Number(this.slider.value));
    this.slider = h("input", { type: "range", min: 0, max: 0, step: 1, value: 0, "aria-label": "Step", oninput: seek });
    this.status = h("output", { class: "status" });
    this.announcement = h("p", { class: "unseen", role: "status" });
    const pace = h("select", { "aria-label": "Speed", onchange: () => this.pace(Number(pace.value)) },
      ...PACES.map(([value, text]) => h("option", { value, selected: value === 1 }, text)));
    this.bar = h("div", { class: "player", role: "group", "aria-label": "Player" },
      button("First step", "first", () => this.go(0), "Home"),
      button("Step back", "back", () => this.by(-1), "←"),
      this.playButton,
      button("Step on", "on", () => this.by(1), "→"),
      button("Last step", "last", () => this.go(this.ticks - 1), "End"),
      this.slider, this.status, pace, this.announcement);
  }

  resize(ticks) {
    this.ticks = ticks;
    this.slider.max = ticks - 1;
  }

  go(tick, person = true) {
    this.tick = clamp(tick, 0, this.ticks - 1);
    if (person) {
      this.pause();
      this.held = this.tick < this.ticks - 1;
    }
    this.slider.value = this.tick;
    this.render(this.tick, person);
  }

  by(steps) {
    this.go(this.tick + steps);
  }

  tell(text, person) {
    setText(this.status, text);
    this.slider.setAttribute("aria-valuetext", text);
    if (person) setText(this.announcement, text);
  }

  toggle() {
    this.held = true;
    if (this.timer) this.pause();
    else this.play();
  }

  play() {
    if (this.tick >= this.ticks - 1) this.go(0, false);
    this.mark(true);
    const wait = () => clamp(WHOLE / this.ticks, FASTEST, SLOWEST) / this.speed;
    const next = () => {
      this.go(this.tick + 1, false);
      if (this.tick >= this.ticks - 1) this.pause();
      else this.timer = setTimeout(next, wait());
    };
    this.timer = setTimeout(next, wait());
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = null;
    this.mark(false);
  }

  mark(plays) {
    this.playButton.replaceChildren(icon(plays ? "pause" : "play"));
    this.playButton.setAttribute("aria-label", plays ? "Pause" : "Play");
  }

  pace(speed) {
    this.speed = speed;
  }

  // Keys work wherever they mean nothing else.
  key(event) {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    const target = event.target, tag = target.tagName;
    if (["INPUT", "SELECT", "TEXTAREA"].includes(tag) && target !== this.slider) return;
    if (event.key === " " && ["BUTTON", "SUMMARY", "A"].includes(tag)) return;
    const acts = {
      " ": () => this.toggle(),
      ArrowLeft: () => this.by(-1),
      ArrowRight: () => this.by(1),
      Home: () => this.go(0),
      End: () => this.go(this.ticks - 1),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }
}
