// What the page holds of an episode: compressed parts, opened when a reader comes to their steps.

const KEPT = 6; // opened parts of an episode

function decoded(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function opened(id) {
  // Written to directly: a Blob would take the bytes through another process first.
  const gzip = new DecompressionStream("gzip");
  const writer = gzip.writable.getWriter();
  writer.write(decoded(document.getElementById(id).textContent));
  writer.close();
  const reader = gzip.readable.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return JSON.parse(text);
    text += decoder.decode(value, { stream: true });
  }
}

const sums = (gaps) => {
  let at = 0;
  return gaps.map((gap) => (at += gap));
};

class Episode {
  constructor(entry) {
    this.entry = entry;
    this.parts = new Map();
    this.head = null;
  }

  async open() {
    if (this.head) return;
    const head = await opened(`episode-${this.entry.id}`);
    head.changed = sums(head.changed);
    head.trouble = sums(head.trouble);
    this.head = head;
  }

  get last() {
    return this.head.steps;
  }

  // Which part holds a step.
  place(step) {
    const starts = this.head.starts;
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle] <= step) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  part(number) {
    let part = this.parts.get(number);
    if (!part) {
      part = opened(`episode-${this.entry.id}-${number}`).then((data) => new Part(data, this.head.starts[number]));
      if (this.parts.size >= KEPT) this.parts.delete(this.parts.keys().next().value);
    }
    // The one used last stands last.
    this.parts.delete(number);
    this.parts.set(number, part);
    return part;
  }

  // A step's record, the folder before and after it, its picture and what was achieved until then.
  async at(step) {
    const number = this.place(step);
    const part = await this.part(number);
    const near = step + 30 >= (this.head.starts[number + 1] ?? Infinity) ? number + 1 : step - 30 < part.start ? number - 1 : -1;
    if (near >= 0 && near < this.entry.parts && !this.parts.has(near)) this.part(near);
    return part.at(step);
  }
}

class Part {
  constructor(data, start) {
    this.start = start;
    this.steps = data.steps;
    this.begun = new Map(Object.entries(data.memory).map(([name, text]) => [name, text.split("\n")]));
    this.folders = [];
    this.screens = [];
  }

  at(step) {
    const i = step - this.start;
    let achieved = i;
    while (achieved > 0 && !this.steps[achieved].achievements) achieved--;
    return {
      record: this.steps[i],
      before: i ? this.folder(i - 1) : this.begun,
      after: this.folder(i),
      picture: this.picture(i),
      achievements: this.steps[achieved].achievements ?? null,
    };
  }

  // The memory folder after a step's changes: file -> lines. Files that did not change are shared.
  folder(i) {
    for (let k = this.folders.length; k <= i; k++) {
      const before = k ? this.folders[k - 1] : this.begun;
      const changes = this.steps[k].memory;
      this.folders.push(changes ? changed(before, changes) : before);
    }
    return this.folders[i];
  }

  // The picture of a step; of a screen, all its rows.
  picture(i) {
    const own = this.steps[i].picture;
    if (!own || !own.rows) return own ?? null;
    for (let k = this.screens.length; k <= i; k++) {
      const picture = this.steps[k].picture;
      if (!picture) {
        this.screens.push(this.screens[k - 1] ?? []);
        continue;
      }
      const rows = (this.screens[k - 1] ?? []).slice(0, picture.of);
      for (const [number, text, runs] of picture.rows) rows[number] = [text, runs];
      this.screens.push(rows);
    }
    return { screen: this.screens[i] };
  }
}

function changed(folder, changes) {
  const next = new Map(folder);
  for (const [name, change] of Object.entries(changes)) {
    if (change === null) next.delete(name);
    else if (typeof change === "string") next.set(name, change.split("\n"));
    else {
      const lines = [...next.get(name)];
      for (const [at, gone, come] of change.toReversed()) lines.splice(at, gone, ...come);
      next.set(name, lines);
    }
  }
  return next;
}

// An element with text nodes and elements in it: what comes from a trace is never read as HTML.
function made(name, classes, ...inside) {
  const element = document.createElement(name);
  if (classes) element.className = classes;
  element.append(...inside);
  return element;
}
