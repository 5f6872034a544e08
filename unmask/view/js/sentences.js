// Sentences about runs. Needs dom, words and branches.

function gradeOf(run) {
  return run.grade || null;
}

function verdictOf(grade) {
  return h("b", { class: grade.right ? "right" : "wrong" }, grade.right ? "✓ right" : "✗ wrong");
}

// The part of an answer that a headline has room for.
function briefAnswer(run) {
  const grade = gradeOf(run);
  return quoted(grade && grade.answer ? grade.answer : answerIn(run.end.texts[run.end.chosen]), 60);
}

// The text between answer tags, else the last line.
function answerIn(text) {
  const tagged = /<answer>\s*([\s\S]*?)\s*<\/answer>/.exec(text);
  return tagged ? tagged[1] : text.trim().split("\n").at(-1);
}

function workSentence(run) {
  const candidates = run.searches.reduce((sum, number) => sum + run.frames[number].branch.parent.length, 0);
  const kept = run.searches.reduce((sum, number) => sum + run.frames[number].branch.kept.filter(Boolean).length, 0);
  const finals = run.frames.at(-1).thread.length, rounds = repairRounds(run).length;
  const steps = run.frames.at(-1).step;
  let work = `wrote ${count(run.slots.length, "position")} in ${count(steps, "step")}`;
  const searches = count(run.searches.length, "search");
  if (candidates) work = `compared ${count(candidates, "candidate")} in ${searches} and kept ${kept}`;
  else if (run.threads.length > finals) work = `wrote ${count(run.threads.length, "text")} and kept ${finals}`;
  else if (run.threads.length > 1) work = `wrote ${count(run.threads.length, "text")}`;
  if (rounds) work += `, then masked words again in ${count(rounds, "round")}`;
  return work;
}

// A sentence of the headline for every run.
function headline(runs) {
  return runs.map((run) => h("span", null, ...runSentence(run)));
}

// The parts of a sentence about a run; the verdict has a colour.
function runSentence(run) {
  const last = run.frames.at(-1), grade = gradeOf(run);
  const cost = count(run.end ? run.end.cost.forward_passes : last.passes, "forward pass");
  if (!run.end) return [`${run.label} is writing: step ${last.step}, ${cost}.`];
  const work = `${run.label} ${workSentence(run)} with ${cost}; its answer `;
  const answer = h("em", null, briefAnswer(run));
  if (!grade) return [`${work}is `, answer, "."];
  const name = grade.right ? "right" : "wrong";
  return [work, answer, " ", h("b", { class: name }, `is ${name}`), "."];
}

function tickSentence(runs, numbers) {
  return runs.map((run, index) => {
    const done = run.end && numbers[index] === run.last;
    if (runs.length === 1) return `${run.beat} ${numbers[index]} of ${run.last}${done ? ", done" : ""}`;
    return `${shorten(run.label, 24)} ${done ? "done" : `step ${run.frames[numbers[index]].step}`}`;
  }).join(" · ");
}
