// The form of a decoder, made from the registry, and its spec: name(key=value, …). Needs dom.

// A spec's name and the texts of its settings; what is inside brackets or quotes stays whole.
function parseSpec(spec) {
  const match = /^\s*([^\s(]+)\s*(?:\(([\s\S]*)\))?\s*$/.exec(spec);
  if (!match) return { name: spec.trim(), settings: {} };
  const parts = [];
  let depth = 0, quote = "", start = 0;
  const inside = match[2] || "";
  for (let i = 0; i <= inside.length; i++) {
    const sign = inside[i];
    if (quote) quote = sign === quote ? "" : quote;
    else if (sign === "'" || sign === '"') quote = sign;
    else if (sign === "(") depth++;
    else if (sign === ")") depth--;
    if (sign === undefined || (sign === "," && !depth && !quote)) {
      parts.push(inside.slice(start, i));
      start = i + 1;
    }
  }
  const settings = parts.filter((part) => part.includes("=")).map((part) => {
    const place = part.indexOf("=");
    return [part.slice(0, place).trim().replaceAll("_", "-"), part.slice(place + 1).trim()];
  });
  return { name: match[1], settings: Object.fromEntries(settings) };
}

class DecoderForm {
  constructor(place, registry, optional) {
    Object.assign(this, { place, registry });
    const names = registry.decoders.map((entry) => h("option", { value: entry.name }, entry.name));
    const title = place.querySelector("legend").textContent;
    const none = optional ? h("option", { value: "" }, "nothing: one decoder alone") : null;
    this.choice = h("select", { "aria-label": `${title}: decoder`, onchange: () => this.rebuild({}) }, none, ...names);
    this.summary = h("p", { class: "summary" });
    const typed = () => this.set(this.spec.value);
    this.spec = h("input", { class: "spec", spellcheck: "false", "aria-label": `${title}: spec`, onchange: typed });
    this.fields = h("div", { class: "settings" });
    this.details = h("details", null, h("summary", null, "Settings"), this.fields);
    this.typed = h("label", { class: "typed" }, "As the command line takes it", this.spec);
    place.append(this.choice, this.summary, this.typed, this.details);
  }

  get value() {
    return this.choice.value === "" ? "" : this.spec.value.trim();
  }

  entry(name) {
    return this.registry.decoders.find((entry) => entry.name === name || entry.aliases.includes(name));
  }

  set(spec) {
    const { name, settings } = parseSpec(spec), entry = this.entry(name);
    this.choice.value = spec.trim() === "" ? "" : entry ? entry.name : this.choice.value;
    this.rebuild(settings);
    if (spec.trim()) this.spec.value = spec.trim(); // as it was typed: the server says what is wrong with it
  }

  rebuild(settings) {
    const entry = this.entry(this.choice.value);
    this.typed.hidden = this.details.hidden = !entry;
    setText(this.summary, entry ? entry.summary : "");
    const field = (setting) => [setting, this.input(setting, settings[setting.name] ?? "")];
    this.inputs = entry ? entry.settings.map(field) : [];
    this.fields.replaceChildren(...this.inputs.map(([setting, input]) =>
      h("label", { title: setting.meaning }, setting.name, input, input.names)));
    this.write();
  }

  input(setting, value) {
    const properties = { title: setting.meaning, oninput: () => this.write(), value };
    const kinds = setting.choices || setting.type.split(" | ").filter((kind) => kind !== "none");
    const options = kinds[0] === "bool" ? ["true", "false"] : kinds.length > 1 ? kinds : this.known(kinds[0]);
    const number = { int: 1, float: "any" }[kinds[0]];
    if (number) return h("input", { ...properties, type: "number", step: number, placeholder: setting.default });
    if (options && kinds[0] !== "Decoder" && kinds[0] !== "Likelihood") {
      const choices = options.map((name) => h("option", { value: name, selected: name === value }, name));
      return h("select", properties, h("option", { value: "" }, `${setting.default} (default)`), ...choices);
    }
    const list = newId("names"), names = options || [];
    const input = h("input", { ...properties, list, placeholder: setting.default, spellcheck: "false" });
    input.names = h("datalist", { id: list }, ...names.map((name) => h("option", { value: name })));
    return input;
  }

  known(kind) {
    const kinds = { Decoder: this.registry.decoders, Likelihood: this.registry.likelihoods };
    return kinds[kind] ? kinds[kind].map((entry) => entry.name) : null;
  }

  write() {
    const given = this.inputs.filter(([, input]) => input.value !== "")
      .map(([setting, input]) => `${setting.name}=${input.value}`);
    this.spec.value = given.length ? `${this.choice.value}(${given.join(", ")})` : this.choice.value;
  }
}
