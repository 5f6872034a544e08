// Elements and numbers. Text enters the page only as text. Needs nothing.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);
const byId = (id) => document.getElementById(id);
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const plural = (noun) => noun + (/(ch|ss)$/.test(noun) ? "es" : "s");
const count = (number, noun) => `${number.toLocaleString("en")} ${number === 1 ? noun : plural(noun)}`;

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function show(number, digits = 2) {
  if (typeof number !== "number" || !Number.isFinite(number)) return "−∞";
  const text = number.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

// A probability that is not 1 never reads 1.00.
function percent(p) {
  return p >= 0.995 && p < 1 ? "> 99%" : p > 0 && p < 0.01 ? "< 1%" : `${Math.round(100 * p)}%`;
}

function shorten(text, most) {
  const characters = Array.from(text);
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
}

// By click, tap or drag; a finger that scrolls the page past an element means nothing.
function onDrag(element, act) {
  element.addEventListener("click", act);
  element.addEventListener("pointermove", (event) => event.buttons && act(event));
}

let lastNumber = 0;
const newId = (stem) => `${stem}-${++lastNumber}`;

// The last of the sorted values that is at most `value`, or -1.
function lastAtMost(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
