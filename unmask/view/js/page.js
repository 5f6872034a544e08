// A page of traces: unpacks the data of the file, shows it and handles keys.
// Needs dom, words, run, sentences and viewer.

const SHORT_PROMPT = 500; // characters that are shown without being asked for

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function readRun({ label, grade, lines }) {
  const run = new Run(lines[0], label), { end } = lines.at(-1);
  Object.assign(run.words, end.words);
  for (const line of lines.slice(1, -1)) run.add(line);
  run.grade = grade;
  run.finish(end);
  return run;
}

// `current` gives the viewer that is on the page, if there is one.
function listen(current) {
  addEventListener("keydown", (event) => {
    if (event.key === "?" && !["INPUT", "TEXTAREA"].includes(event.target.tagName)) byId("help").showModal();
    else if (!byId("help").open) current()?.player.key(event);
  });
  addEventListener("beforeprint", () => {
    current()?.settle();
    for (const details of document.querySelectorAll("details.prompt, details.about")) details.open = true;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("resize")));
  let waiting = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => current()?.redraw());
  });
}

function theme() {
  const button = byId("theme"), names = ["system", "light", "dark"];
  let chosen = 0;
  button.addEventListener("click", () => {
    chosen = (chosen + 1) % 3;
    if (chosen) document.documentElement.dataset.theme = names[chosen];
    else delete document.documentElement.dataset.theme;
    setText(button, `Theme: ${names[chosen]}`);
    dispatchEvent(new Event("resize"));
  });
  byId("open-help").addEventListener("click", () => byId("help").showModal());
}

async function startPage() {
  theme();
  if (typeof DecompressionStream === "undefined") throw new Error("This page needs a browser of 2023 or later.");
  const runs = (await unpack(byId("data").textContent)).map(readRun), viewer = new Viewer(runs);
  byId("headline").replaceChildren(...headline(runs));
  const prompt = visible(runs[0].header.prompt).trim();
  setText(byId("prompt"), prompt);
  byId("prompt").parentNode.open = prompt.length <= SHORT_PROMPT;
  byId("facts").replaceChildren(...runs.flatMap(({ header, end }) => [h("dt", null, header.decoder),
    h("dd", null, [`model ${header.model}`, `seed ${header.seed}`, `${count(end.cost.forward_passes, "row")} asked`,
      `${end.cost.computed} computed`].join(", "))]));
  byId("stage").replaceChildren(viewer.element);
  listen(() => viewer);
  const wanted = /^#step=(\d+)$/.exec(location.hash);
  viewer.player.go(wanted ? Number(wanted[1]) : viewer.ticks.length - 1, false);
  viewer.settle();
  document.documentElement.dataset.ready = "true";
}

function failed(error) {
  byId("stage").replaceChildren(h("p", { role: "alert" }, String(error.message || error)));
  throw error;
}
