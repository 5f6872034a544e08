// What happened, in words.

function gradeOf(run) {
  return run.grade || null;
}

// The part of an answer that a headline has room for.
function briefAnswer(run) {
  const grade = gradeOf(run);
  if (grade && grade.answer) return quoted(grade.answer, 60);
  const text = run.end.texts[run.end.chosen].trim();
  const tagged = /<answer>\s*([\s\S]*?)\s*<\/answer>/.exec(text);
  return quoted(tagged ? tagged[1] : text.split("\n").at(-1), 60);
}

function workSentence(run) {
  const candidates = run.searches.reduce((sum, number) => sum + run.frames[number].branch.parent.length, 0);
  const kept = run.searches.reduce((sum, number) => sum + run.frames[number].branch.kept.filter(Boolean).length, 0);
  const finals = run.frames.at(-1).thread.length, rounds = repairRounds(run).length;
  const steps = run.frames.at(-1).step;
  let work = `wrote ${count(run.slots.length, "position")} in ${count(steps, "step")}`;
  const searches = count(run.searches.length, "search");
  if (candidates) work = `weighed ${count(candidates, "candidate")} in ${searches} and kept ${kept}`;
  else if (run.threads.length > finals) work = `wrote ${count(run.threads.length, "text")} and kept ${finals}`;
  else if (run.threads.length > 1) work = `wrote ${count(run.threads.length, "text")}`;
  if (rounds) work += `, then masked words again in ${count(rounds, "round")}`;
  return work;
}

// The headline of one run.
function runSentence(run) {
  const last = run.frames.at(-1);
  if (!run.end) return `${run.label} is writing: step ${last.step}, ${count(last.rows, "row")}.`;
  const grade = gradeOf(run), verdict = grade ? (grade.right ? " is right" : " is wrong") : "";
  const answer = verdict ? `its answer ${briefAnswer(run)}${verdict}` : `its answer is ${briefAnswer(run)}`;
  return `${run.label} ${workSentence(run)}; ${answer}. ${count(run.end.cost.rows, "row")}.`;
}

function tickSentence(runs, numbers) {
  return runs.map((run, index) => {
    const done = run.end && numbers[index] === run.last;
    const where = `${run.beat} ${numbers[index]} of ${run.last}${done ? ", done" : ""}`;
    return runs.length > 1 ? `${shorten(run.label, 24)}: ${where}` : where;
  }).join(" · ");
}
