// What the model wrote in LOG and PLAN, what became of it, and what hooks did.

const SHORT = 320; // characters of a result that is shown at once

class Turns {
  constructor(place) {
    this.place = place;
    this.open = new Set();
  }

  show(record, { models, system }) {
    const found = [];
    if (system && !record.end) found.push(this.details("system", "system message", () => made("pre", "", system)));
    (record.log ?? []).forEach((turn, i, all) => found.push(this.turn("LOG", turn, i, all.length, models)));
    if (record.maintained) {
      const box = made("section", "turn hook", heading("maintain", "hook of the scaffold"));
      for (const op of record.maintained) box.append(this.operation(op));
      found.push(box);
    }
    (record.plan ?? []).forEach((turn, i, all) => found.push(this.turn("PLAN", turn, i, all.length, models)));
    if (record.hooks) {
      const box = made("section", "turn hook", heading("hooks", "beyond answering"));
      for (const [method, kind, text] of record.hooks) {
        const failed = ["error", "lost", "off"].includes(kind);
        const words = { repaired: "changed the action to", again: "asked to think again:" }[kind] ?? `${kind}:`;
        box.append(made("p", failed ? "error" : "event", made("strong", "", method), ` ${words} `, text));
      }
      found.push(box);
    }
    for (const warning of record.warnings ?? []) found.push(made("p", "error", warning));
    if (record.end || !(record.log || record.plan)) found.push(made("p", "dim", record.end ? "The episode is over." : "Nothing was written."));
    this.place.replaceChildren(...found);
    this.place.scrollTop = 0;
  }

  turn(phase, turn, i, of, models) {
    const [prompt, completion, cached] = turn.tokens ?? [0, 0, 0];
    const facts = [models[turn.model ?? 0]];
    if (turn.tokens) facts.push(`${prompt} + ${completion} tokens${cached ? `, ${cached} cached` : ""}`);
    if (turn.seconds) facts.push(`${turn.seconds} s`);
    if (turn.cost) facts.push(`${turn.cost} USD`);
    const box = made("section", `turn ${phase.toLowerCase()}`, heading(of > 1 ? `${phase} ${i + 1}` : phase, facts.join(" · ")));
    box.append(this.details(`${phase}-prompt`, "prompt", () => asked(turn.prompt)));
    box.append(reply(turn));
    for (const error of turn.errors ?? []) box.append(made("p", "error", error));
    for (const op of turn.ops ?? []) box.append(this.operation(op));
    return box;
  }

  operation(op) {
    const box = made("div", op.refused ? "op refused" : "op");
    const head = made("p", "label", made("strong", "", op.label));
    const badges = [];
    if (op.by) badges.push(["", `by ${op.by}`]);
    if (op.refused) badges.push(["bad", "refused"]);
    if (op.duplicate) badges.push(["bad", "duplicate"]);
    if (op.truncated) badges.push(["bad", "cut"]);
    if (op.found !== undefined) badges.push([op.found ? "" : "bad", op.found === 1 ? "1 line" : `${op.found} lines`]);
    if (op.added) badges.push(["", `${op.added > 0 ? "+" : "−"}${Math.abs(op.added)} B`]);
    for (const [kind, text] of badges) head.append(" ", made("span", `badge ${kind}`, text));
    box.append(head);
    const args = (op.args ?? []).join(" | ");
    if (args && args.length > 60) box.append(this.details("args", "what it wrote", () => made("pre", "", args)));
    const result = op.result ?? "";
    if (result.length > SHORT || result.split("\n").length > 6) {
      const count = result.split("\n").length;
      const words = count > 1 ? `result, ${count} lines` : `result, ${result.length} characters`;
      box.append(this.details("result", words, () => made("pre", "result", result)));
    } else if (result) box.append(made("pre", "result", result));
    return box;
  }

  // Something that is shown on demand; what is open stays open from step to step.
  details(kind, words, content) {
    const box = made("details", "", made("summary", "", words));
    const fill = () => box.childElementCount === 1 && box.append(content());
    if (this.open.has(kind)) {
      box.open = true;
      fill();
    }
    box.addEventListener("toggle", () => {
      if (box.open) {
        fill();
        this.open.add(kind);
      } else this.open.delete(kind);
    });
    return box;
  }
}

function heading(words, more) {
  return made("h4", "", words, " ", made("small", "dim", more));
}

// The prompt as it is stored: what stands elsewhere on the page is only named.
function asked([before, block, after]) {
  const named = { observation: "[the observation]", results: "[the results of the turn before]" }[block] ?? "";
  return made("pre", "", before, ...(named ? [made("em", "dim", named)] : []), after);
}

// The reply to the letter, with the operations that were run marked in it.
function reply(turn) {
  const pre = made("pre", "reply");
  if (!turn.text) {
    pre.append(made("em", "dim", "(no reply)"));
    return pre;
  }
  let at = 0;
  for (const { span, refused } of turn.ops ?? []) {
    if (!span || span[0] < at) continue;
    pre.append(turn.text.slice(at, span[0]), made("mark", refused ? "refused" : "", turn.text.slice(...span)));
    at = span[1];
  }
  pre.append(turn.text.slice(at));
  return pre;
}
