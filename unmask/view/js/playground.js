// The playground: a prompt and one decoder or two, live at equal cost. Needs all other files.

const EXAMPLES = [
  { name: "reach 88", prompt: "Numbers: [58, 85, 76, 39]\nTarget: 88", kind: "chat", length: "64", template: "" },
  { name: "reach 94", prompt: "Numbers: [87, 28, 35]\nTarget: 94", kind: "chat", length: "48", template: "" },
  {
    name: "fixed words", prompt: "Numbers: [87, 28, 35]\nTarget: 94", kind: "chat", length: "",
    template: "<mask:17>\n<answer><mask:8></answer>",
  },
];
const PHONE = 700; // pixels, as in page.css
const FIELDS = ["prompt", "model", "kind", "length", "seed", "template"];

class Playground {
  constructor(registry) {
    this.form = byId("ask");
    this.forms = [new DecoderForm(byId("first"), registry, false), new DecoderForm(byId("second"), registry, true)];
    this.viewer = null;
    this.stopping = null;
    this.field("model").append(...registry.models.map((model) => h("option", { value: model.id }, model.id)));
    const link = (example) => h("button", { type: "button", onclick: () => this.fill(example) }, example.name);
    byId("examples").append(...EXAMPLES.map(link));
    this.form.addEventListener("submit", (event) => (event.preventDefault(), this.run()));
    this.field("model").addEventListener("change", () => this.measure(registry));
    byId("stop").addEventListener("click", () => this.stop());
    byId("link").addEventListener("click", () => this.copyLink());
    this.fill({ ...EXAMPLES[0], model: registry.models[0].id });
    this.forms[0].set(registry.default);
    this.forms[1].set(registry.default === "low-confidence" ? "search" : "low-confidence");
    this.read(location.hash);
    this.measure(registry);
    addEventListener("hashchange", () => this.read(location.hash));
  }

  field(name) {
    return this.form.elements.namedItem(name);
  }

  fill(values) {
    for (const name of FIELDS) if (values[name] !== undefined) this.field(name).value = values[name];
    byId("fixed").open = this.field("template").value !== "";
  }

  // The masks that a model writes unless told otherwise.
  measure(registry) {
    const chosen = registry.models.find((model) => model.id === this.field("model").value);
    this.field("length").placeholder = chosen?.length ?? "default";
  }

  // The address holds a run: everything that is needed to repeat it.
  read(hash) {
    const values = new URLSearchParams(hash.slice(1));
    if (!values.has("prompt")) return;
    this.fill(Object.fromEntries(values));
    if (values.get("decoder")) this.forms[0].set(values.get("decoder"));
    this.forms[1].set(values.get("against") || "");
    this.say("This link holds a run: press Run to repeat it.");
  }

  get address() {
    const values = FIELDS.map((name) => [name, this.field(name).value]).filter(([, value]) => value !== "");
    const [decoder, against] = this.forms.map((form) => form.value);
    return `#${new URLSearchParams([...values, ["decoder", decoder], ...(against ? [["against", against]] : [])])}`;
  }

  async copyLink() {
    history.replaceState(null, "", this.address);
    const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    this.say(copied ? "The link is copied: it repeats this run." : "The address of this page now repeats this run.");
  }

  say(text) {
    setText(byId("state"), text);
  }

  body(decoder) {
    const value = (name) => this.field(name).value;
    const number = (name) => (value(name) === "" ? {} : { [name]: Number(value(name)) });
    const chat = { messages: [{ role: "user", content: value("prompt") }] };
    const prompt = value("kind") === "chat" ? chat : { prompt: value("prompt") };
    const template = value("template") ? { template: value("template") } : {};
    return { model: value("model"), decoder, ...prompt, ...number("length"), ...number("seed"), ...template };
  }

  stop() {
    if (this.stopping) this.stopping.abort();
  }

  async run() {
    this.stop();
    history.replaceState(null, "", this.address);
    const specs = this.forms.map((form) => form.value).filter(Boolean), stopping = new AbortController();
    this.stopping = stopping;
    const race = (this.race = new Race(specs, (viewer) => this.show(viewer)));
    this.begin();
    let trouble = null;
    try {
      const key = byId("key").value, report = (index) => (event, data) => race.take(index, event, data);
      await Promise.all(specs.map((spec, index) => follow(this.body(spec), key, stopping.signal, report(index))));
    } catch (error) {
      trouble = error;
    }
    race.rest(); // a short run may end before anything was drawn
    if (this.race === race) {
      if (trouble) this.trouble(trouble, stopping);
      else this.say("Done.");
      this.finished(race);
    }
    if (trouble) stopping.abort(); // the others of a race that lost one
  }

  begin() {
    setText(byId("trouble"), "");
    this.say("Waiting for the first step …");
    byId("saves").replaceChildren();
    byId("stop").disabled = false;
  }

  trouble(error, stopping) {
    if (stopping.signal.aborted || error.name === "AbortError") return this.say("Stopped.");
    if (error.status === 401) byId("key-field").hidden = false;
    setText(byId("trouble"), error.message);
    this.say("");
  }

  finished(race) {
    byId("stop").disabled = true;
    if (!race.runs.length || !race.runs.every((run) => run && run.end)) return;
    const traces = race.runs.map((run, index) => traceLines(run, race.lines[index]));
    const button = (text, act) => h("button", { type: "button", onclick: act }, text);
    byId("saves").replaceChildren(button("Save as page", () => this.savePage(race, traces)),
      ...traces.map((lines, index) => button(traces.length > 1 ? `Save trace ${index + 1}` : "Save trace", () =>
        save(`trace-${index + 1}.jsonl`, "application/jsonl", lines.map((line) => `${JSON.stringify(line)}\n`).join("")))));
  }

  async savePage(race, traces) {
    const template = await (await ask("page.html", byId("key").value)).text();
    const data = await pack(traces.map((lines, index) => ({ label: race.runs[index].label, grade: null, lines })));
    const place = 'type="application/octet-stream"><';
    save("trace.html", "text/html", template.replace(place, () => `${place.slice(0, -1)}${data}<`));
  }

  show(viewer) {
    this.viewer = viewer;
    this.say("");
    byId("stage").replaceChildren(viewer.element);
    requestAnimationFrame(() => this.reveal()); // once the canvases have their height
  }

  // A phone shows the form only.
  reveal() {
    const stage = byId("stage"), low = innerWidth <= PHONE ? 0.2 : 0.8;
    if (stage.getBoundingClientRect().top > low * innerHeight) stage.scrollIntoView();
  }
}

// Runs that grow together. None is shown beyond the forward passes that all of them have made.
class Race {
  constructor(specs, ready) {
    Object.assign(this, { specs, ready, runs: [], lines: specs.map(() => []), viewer: null, waiting: 0 });
  }

  take(index, event, data) {
    if (event === "header") this.runs[index] = new Run(data, this.specs[index]);
    if (event === "step") this.runs[index].add(data);
    if (event === "end") this.runs[index].finish(data.end);
    else this.lines[index].push(data);
    this.waiting ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.waiting = 0;
    if (this.runs.filter(Boolean).length < this.specs.length) return;
    if (!this.viewer) {
      this.viewer = new Viewer(this.runs);
      this.ready(this.viewer);
    }
    const { viewer } = this;
    viewer.refresh();
    byId("headline").replaceChildren(...headline(this.runs));
    if (viewer.player.held) viewer.render(viewer.player.tick, false);
    else viewer.player.go(this.equal(), false);
  }

  // The tick up to which every unfinished run has come.
  equal() {
    const open = this.runs.filter((run) => !run.end).map((run) => run.frames.at(-1).passes);
    const passes = open.length ? Math.min(...open) : Infinity;
    return Math.max(0, lastAtMost(this.viewer.ticks, passes));
  }

  rest() {
    if (this.waiting) cancelAnimationFrame(this.waiting);
    this.draw();
    if (this.viewer) this.viewer.settle();
  }
}

async function startPlayground() {
  theme();
  let playground = null;
  listen(() => playground && playground.viewer);
  const registry = async () => (await ask("api/registry", byId("key").value)).json();
  const begin = (known) => {
    playground = new Playground(known);
    byId("key-field").hidden = byId("key").value === "";
    setText(byId("trouble"), "");
    document.documentElement.dataset.ready = "true";
  };
  const unlock = async () => {
    if (playground) return;
    try {
      begin(await registry());
    } catch (error) {
      setText(byId("trouble"), error.message);
    }
  };
  try {
    begin(await registry());
  } catch (error) {
    setText(byId("trouble"), error.message);
    if (error.status !== 401) throw error;
    byId("key-field").hidden = false;
    byId("key").focus();
    byId("key").addEventListener("change", unlock);
    document.documentElement.dataset.ready = "locked";
  }
}
