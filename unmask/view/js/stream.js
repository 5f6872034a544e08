// The server's stream of a run: the lines of its trace as events. Needs dom.

class RefusedError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(path, key, options = {}) {
  const headers = { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
  const reply = await fetch(path, { ...options, headers }).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new Error("the server cannot be reached: is it still running?");
  });
  if (reply.ok) return reply;
  const body = await reply.json().catch(() => null);
  throw new RefusedError(reply.status, body?.error?.message || `the server answered with status ${reply.status}`);
}

// Yields [event, data] as they come.
async function* events(reply) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const fields = block.split("\n").map((line) => /^(event|data): ?(.*)$/.exec(line)).filter(Boolean);
      const data = fields.filter((field) => field[1] === "data").map((field) => field[2]).join("\n");
      if (data) yield [fields.find((field) => field[1] === "event")?.[2] || "message", JSON.parse(data)];
    }
  }
}

// One run on the server: tells of its header, each of its steps and its end.
async function follow(body, key, signal, report) {
  const reply = await ask("api/decode", key, { method: "POST", body: JSON.stringify(body), signal });
  for await (const [event, data] of events(reply)) {
    if (event === "error") throw new RefusedError(500, data.error.message);
    report(event, data);
    if (event === "end") return;
  }
  throw new Error("the stream ended before the answer");
}

// The lines of a trace's file, as the command line writes them.
function traceLines(run, lines) {
  const plain = lines.map(({ words, ...line }) => line);
  const { text, cost, ...end } = run.end, { calls, seconds, memory, ...counts } = cost;
  return [...plain, { end: { ...end, words: run.words, cost: counts, measured: { calls, seconds, memory } } }];
}

async function pack(value) {
  const stream = new Blob([JSON.stringify(value)]).stream().pipeThrough(new CompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}

function save(name, kind, text) {
  const link = h("a", { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
