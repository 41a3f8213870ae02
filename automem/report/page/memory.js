// The memory folder at a step, with what changed since the step before marked.

const BLOCK = 200; // lines that are laid out together, once they come into view

class Folder {
  constructor(list, view, when) {
    this.list = list;
    this.view = view;
    this.when = when;
    this.chosen = null;
    this.shown = null;
  }

  show(before, after, record) {
    this.state = { before, after, changes: record.memory ?? {} };
    const touched = Object.keys(this.state.changes);
    const gone = touched.filter((name) => !after.has(name));
    const names = [...after.keys(), ...gone].sort();
    if (touched.length && !touched.includes(this.chosen)) this.chosen = touched[0];
    if (!names.includes(this.chosen)) this.chosen = names[0] ?? null;
    const when = record.end ? "at the end" : "when PLAN began";
    const count = touched.length === 1 ? "1 file changed" : `${touched.length || "no"} files changed`;
    this.when.textContent = `${when} · ${names.length ? count : "empty"}`;
    this.names(names);
    this.file(true);
  }

  names(names) {
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.name : null;
    this.list.replaceChildren(
      ...names.map((name) => {
        const lines = this.state.after.get(name);
        const change = this.state.changes[name];
        const button = made("button", change === undefined ? "" : "changed", name);
        button.type = "button";
        button.dataset.name = name;
        button.setAttribute("aria-pressed", String(name === this.chosen));
        button.append(made("small", "", lines ? ` ${size(lines)}` : " removed"));
        if (change !== undefined) button.append(made("small", "delta", ` ${delta(this.state.before.get(name), change)}`));
        button.addEventListener("click", () => {
          this.chosen = name;
          for (const other of this.list.children) other.setAttribute("aria-pressed", String(other.dataset.name === name));
          this.file(true);
        });
        return button;
      }),
    );
    if (focused !== null) [...this.list.children].find((button) => button.dataset.name === focused)?.focus();
  }

  file(scroll) {
    const name = this.chosen;
    if (name === null) {
      this.view.replaceChildren(made("p", "dim", "The memory folder is empty."));
      return;
    }
    const before = this.state.before.get(name);
    const after = this.state.after.get(name);
    const change = this.state.changes[name];
    const text = made("pre", "file");
    text.dataset.name = name;
    if (!after) lines(text, before, 0, before.length, "del", true);
    else if (change === undefined) lines(text, after, 0, after.length, "", false);
    else if (typeof change === "string") lines(text, after, 0, after.length, "ins", false);
    else {
      let at = 0;
      let grown = 0;
      for (const [start, gone, come] of change) {
        lines(text, after, at + grown, start + grown, "", false);
        lines(text, before, start, start + gone, "del", true);
        lines(text, after, start + grown, start + grown + come.length, "ins", false);
        at = start + gone;
        grown += come.length - gone;
      }
      lines(text, after, at + grown, after.length, "", false);
    }
    this.view.setAttribute("aria-label", `Contents of ${name}`);
    this.view.replaceChildren(text);
    if (!scroll) return;
    const mark = text.querySelector("ins, del");
    if (mark) {
      const down = mark.getBoundingClientRect().top - this.view.getBoundingClientRect().top;
      this.view.scrollTop += down - this.view.clientHeight / 3;
    }
    else if (this.shown !== name) this.view.scrollTop = 0;
    this.shown = name;
  }
}

// Lines [from, to) of a text, put at the end of an element: each marked for itself, or many together.
function lines(element, all, from, to, mark, whole) {
  const end = (i) => (whole || i < all.length - 1 ? "\n" : "");
  if (mark) {
    for (let i = from; i < to; i++) {
      // After a text's last line break there is no line.
      if (i === all.length - 1 && all[i] === "") continue;
      element.append(made(mark, "", all[i] + end(i)));
    }
    return;
  }
  for (let i = from; i < to; i += BLOCK) {
    const until = Math.min(i + BLOCK, to);
    element.append(made("span", "block", all.slice(i, until).join("\n") + end(until - 1)));
  }
}

const encoder = new TextEncoder();

function size(lines) {
  const bytes = encoder.encode(lines.join("\n")).length;
  return bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toFixed(1)} kB`;
}

function delta(before, change) {
  if (change === null) return "";
  if (typeof change === "string") return "new";
  let added = 0;
  let removed = 0;
  for (const [, gone, come] of change) {
    added += come.length;
    removed += gone;
  }
  return [added ? `+${added}` : "", removed ? `−${removed}` : ""].filter(Boolean).join(" ");
}
