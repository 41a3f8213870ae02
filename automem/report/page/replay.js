// The replay: which episode and which step is shown, and every way to move.

const $ = (id) => document.getElementById(id);
const index = JSON.parse($("index").textContent);

const SCROLLING = new Set(["PageUp", "PageDown", "Home", "End", " "]);

class Replay {
  constructor() {
    this.episodes = index.episodes.map((entry) => new Episode(entry));
    this.picture = new Picture($("picture"), index.sheet);
    this.turns = new Turns($("turns"));
    this.folder = new Folder($("files"), $("file"), $("folder-when"));
    this.current = null;
    this.step = 0;
    this.wanted = 0;
    this.timer = null;
    this.asked = 0;
  }

  async watch(number, step) {
    this.pause();
    const episode = this.episodes[number];
    const asked = ++this.asked;
    await Promise.all([episode.open(), this.picture.ready()]);
    if (asked !== this.asked) return;
    this.current = episode;
    const { entry, head, last } = episode;
    $("episode").value = String(number);
    $("at").max = $("number").max = last;
    $("played-by").hidden = !entry.scripted;
    const notes = [...new Set([...entry.trouble, ...head.notes])];
    $("notes").hidden = !notes.length;
    $("notes").replaceChildren(...notes.map((note) => made("li", "", note)));
    $("stage").className = `stage ${head.kind}`;
    ticks(head);
    await this.go(step);
  }

  async go(step) {
    const episode = this.current;
    if (!episode) return;
    this.wanted = Math.max(0, Math.min(step, episode.last));
    const asked = ++this.asked;
    const found = await episode.at(this.wanted);
    // A reader who moved on meanwhile wants the later step.
    if (asked === this.asked) this.show(this.wanted, found);
  }

  show(step, { record, before, after, picture, achievements }) {
    const { head, last } = this.current;
    this.step = step;
    $("at").value = $("number").value = String(step);
    const words = record.end ? "the end" : `step ${step} of ${last - 1}`;
    $("at").setAttribute("aria-valuetext", words);
    $("of").textContent = record.end ? "the end" : `of ${last - 1}`;
    this.picture.show(picture, head.legend, step);
    $("observation").textContent = record.observation ?? "(was not recorded)";
    $("observation").scrollTop = 0;
    this.turns.show(record, head);
    this.folder.show(before, after, record);
    $("action").replaceChildren(...action(record, head, step, achievements));
    $("outcome").textContent = record.end
      ? "the end: what the last action led to"
      : `plays ${record.action}${record.reward ? `, reward ${signed(record.reward)}` : ""}, progression ${(100 * (record.progression ?? 0)).toFixed(1)} %`;
    document.documentElement.dataset.shown = `${this.current.entry.id},${step}`;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.rested(words), 400);
  }

  // Once a reader stays at a step: say it, and let the address lead there.
  rested(words) {
    $("said").textContent = `${words}: ${$("outcome").textContent}`;
    history.replaceState(null, "", `#watch=${this.current.entry.id},${this.step}`);
  }

  // A step from where the reader is going, so that held keys do not wait for each other.
  move(by) {
    this.go(this.wanted + by);
  }

  jump(kind, way) {
    const { head, last } = this.current;
    const steps = kind === "reached" ? head.reached.map(([step]) => step) : head[kind];
    const beyond = steps.filter((step) => (way > 0 ? step > this.step : step < this.step));
    if (beyond.length) this.go(way > 0 ? beyond[0] : beyond.at(-1));
    else $("said").textContent = `no ${way > 0 ? "further" : "earlier"} one`;
    return last;
  }

  play() {
    if (this.timer) return this.pause();
    if (this.step === this.current.last) this.go(0);
    $("play").setAttribute("aria-label", "Pause (space)");
    $("play").textContent = "Pause";
    const tick = () => {
      if (this.wanted >= this.current.last) this.pause();
      else if (this.step === this.wanted) this.move(1);
    };
    this.timer = setInterval(tick, 1000 / Number($("speed").value));
    return undefined;
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    $("play").setAttribute("aria-label", "Play (space)");
    $("play").textContent = "Play";
  }

  key(event) {
    const actions = {
      ArrowRight: () => this.move(1),
      ArrowLeft: () => this.move(-1),
      j: () => this.move(1),
      k: () => this.move(-1),
      PageDown: () => this.move(10),
      PageUp: () => this.move(-10),
      Home: () => this.go(0),
      End: () => this.go(this.current.last),
      " ": () => this.play(),
      a: () => this.jump("reached", event.shiftKey ? -1 : 1),
      m: () => this.jump("changed", event.shiftKey ? -1 : 1),
      e: () => this.jump("trouble", event.shiftKey ? -1 : 1),
      "[": () => this.next(-1),
      "]": () => this.next(1),
      "?": () => help(),
    };
    return actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  }

  next(way) {
    const number = this.episodes.indexOf(this.current) + way;
    if (number >= 0 && number < this.episodes.length) this.watch(number, 0);
  }
}

const signed = (value) => `${value > 0 ? "+" : "−"}${Math.abs(value)}`;

// The action as it was written and played, and what it achieved.
function action(record, head, step, achievements) {
  const found = [];
  if (!record.end) {
    const line = made("p", "action", made("span", "dim", "action "), made("strong", "", record.action));
    if (record.raw === undefined) line.append(" ", made("span", "badge bad", "none was written"));
    else if (record.raw !== record.action) line.append(" ", made("span", "dim", "written as "), made("q", "", record.raw));
    if (record.fallback) line.append(" ", made("span", "badge bad", "fallback"));
    if (record.invalid) line.append(" ", made("span", "badge bad", `${record.invalid} invalid`));
    if (record.terminated) line.append(" ", made("span", "badge", "the game ended"));
    if (record.truncated) line.append(" ", made("span", "badge", "a limit ended it"));
    found.push(line);
  }
  const names = head.reached.filter(([at]) => at <= step).reverse();
  if (names.length) {
    const list = made("ul", "achieved");
    list.setAttribute("aria-label", "Achievements so far, the latest first");
    for (const [at, name] of names) {
      const count = achievements?.[name] ?? 0;
      const item = made("li", at === step ? "new" : "", name.replaceAll("_", " "));
      if (count > 1) item.append(made("small", "dim", ` ${count}`));
      list.append(item);
    }
    found.push(list);
  }
  return found;
}

function ticks(head) {
  const canvas = $("ticks");
  const width = (canvas.width = Math.max(1, canvas.clientWidth * devicePixelRatio));
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const knob = 8 * devicePixelRatio; // the slider's knob keeps half its width from the ends
  const mark = (steps, colour, top, height) => {
    pen.fillStyle = style.getPropertyValue(colour);
    for (const step of steps) pen.fillRect(knob + ((width - 2 * knob) * step) / Math.max(1, head.steps), top, Math.max(1, devicePixelRatio), height);
  };
  pen.clearRect(0, 0, width, canvas.height);
  mark(head.trouble, "--bad", 5, 5);
  mark(head.reached.map(([step]) => step), "--good", 0, 10);
}

function help() {
  const shown = $("help").hidden;
  $("help").hidden = !shown;
  $("help-button").setAttribute("aria-expanded", String(shown));
}

function started() {
  if (!index.episodes.length) {
    $("nothing").hidden = false;
    return;
  }
  $("player").hidden = false;
  const replay = new Replay();
  const groups = new Map();
  index.episodes.forEach((entry, number) => {
    const option = made("option", "", `${entry.name}: ${(100 * entry.progression).toFixed(1)} %${entry.finished ? "" : ", not finished"}`);
    option.value = String(number);
    if (!groups.has(entry.run)) {
      const group = made("optgroup");
      group.label = entry.run;
      groups.set(entry.run, group);
    }
    groups.get(entry.run).append(option);
  });
  $("episode").append(...groups.values());
  $("episode").addEventListener("change", (event) => replay.watch(Number(event.target.value), 0));
  $("at").addEventListener("input", (event) => replay.go(Number(event.target.value)));
  $("number").addEventListener("change", (event) => replay.go(Math.round(Number(event.target.value)) || 0));
  $("play").addEventListener("click", () => replay.play());
  $("speed").addEventListener("change", () => {
    if (replay.timer) {
      replay.pause();
      replay.play();
    }
  });
  $("help-button").addEventListener("click", help);
  for (const button of document.querySelectorAll("[data-go]")) {
    button.addEventListener("click", () => {
      const to = button.dataset.go;
      if (to === "first") replay.go(0);
      else if (to === "last") replay.go(replay.current.last);
      else replay.move(Number(to));
    });
  }
  for (const button of document.querySelectorAll("[data-jump]")) {
    button.addEventListener("click", () => replay.jump(button.dataset.jump, Number(button.dataset.way)));
  }
  addEventListener("resize", () => replay.current && ticks(replay.current.head));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => replay.current && ticks(replay.current.head));

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || !replay.current) return;
    const on = event.target instanceof Element ? event.target : document.body;
    const slider = on.id === "at";
    if (!slider && on.closest("input, select, textarea")) return;
    if (!inView($("player")) && !$("replay").contains(on)) return;
    if (SCROLLING.has(event.key) && on.closest(".scroll, .terminal")) return;
    if (event.key === " " && on.closest("button, summary, a")) return;
    const act = replay.key(event);
    if (!act) return;
    event.preventDefault();
    act();
  });

  const follow = () => {
    const found = /^#watch=(\d+),(\d+)$/.exec(location.hash);
    if (!found) return false;
    const number = index.episodes.findIndex((entry) => entry.id === Number(found[1]));
    if (number < 0) return false;
    replay.watch(number, Number(found[2]));
    $("player").scrollIntoView();
    $("replay").focus({ preventScroll: true });
    return true;
  };
  addEventListener("hashchange", follow);
  if (!follow()) replay.watch(0, 0);
}

// Whether the replay takes most of the window.
function inView(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return Math.min(bottom, innerHeight) - Math.max(top, 0) > innerHeight / 2;
}

started();
