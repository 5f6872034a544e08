// Tokens as a reader can see them, and two texts compared word by word. Needs dom.

const MASK_SIGN = "░", END_SIGN = "∎";
const UNSEEN =
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

// Control characters, direction marks and other invisible characters are shown as signs or numbers.
function visible(text) {
  return text.replace(UNSEEN, (sign) => {
    const code = sign.codePointAt(0);
    if (sign === "\t") return "⇥";
    if (code < 32) return String.fromCodePoint(0x2400 + code);
    return `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
  });
}

// A token inside a row: a mark that would sit on its neighbour gets its own place.
function tokenText(text) {
  if (text === "") return "∅";
  const seen = visible(text).replaceAll("\n", "↵\n");
  return /^\p{M}/u.test(seen) ? `◌${seen}` : seen;
}

function quoted(text, most = 40) {
  return `“${shorten(visible(text).replaceAll("\n", "↵"), most)}”`;
}

const splitWords = (text) => visible(text).match(/\s+|[\p{L}\p{N}_.]+|[^\s\p{L}\p{N}_.]/gu) || [];

// [word, in the first, in the second] in the order of reading.
function compareWords(first, second) {
  const a = splitWords(first), b = splitWords(second);
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const middle = longest(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const both = (words) => words.map((word) => [word, true, true]);
  return [...both(a.slice(0, start)), ...middle, ...both(a.slice(a.length - end))];
}

// By their longest common sequence; very long texts are not aligned but replaced.
function longest(a, b) {
  const first = (word) => [word, true, false], second = (word) => [word, false, true];
  if (a.length * b.length > 4e6) return [...a.map(first), ...b.map(second)];
  const wide = b.length + 1, table = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const here = i * wide + j;
      table[here] = a[i] === b[j] ? table[here + wide + 1] + 1 : Math.max(table[here + wide], table[here + 1]);
    }
  }
  const result = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) result.push([a[i++], true, true]), j++;
    else if (j >= b.length || (i < a.length && table[(i + 1) * wide + j] >= table[i * wide + j + 1])) {
      result.push(first(a[i++]));
    } else result.push(second(b[j++]));
  }
  return result;
}

// One side of a comparison: what only this side has is marked.
function comparedSide(words, side) {
  const parts = [];
  for (const entry of words.filter((entry) => entry[side])) {
    const alone = !(entry[1] && entry[2]), last = parts.at(-1);
    if (last && last.alone === alone) last.text += entry[0];
    else parts.push({ alone, text: entry[0] });
  }
  const name = side === 1 ? "first" : "second";
  return parts.map((part) => (part.alone ? h("mark", { class: name }, part.text) : part.text));
}
