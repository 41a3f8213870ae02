// What the game showed: Crafter's picture from its textures, or a screen of coloured text.

const COLUMNS = 9;
const ROWS = 7;
const ITEM_ROWS = 2;
const FIRST = 0x30; // character of the first look of a cell

class Picture {
  constructor(place, sheet) {
    this.place = place;
    this.sheet = sheet;
    this.image = null;
    this.canvas = made("canvas", "pixels");
    this.canvas.setAttribute("role", "img");
    this.screen = made("pre", "terminal");
    this.screen.tabIndex = 0;
    this.screen.setAttribute("role", "region");
    this.screen.setAttribute("aria-label", "Screen of the game");
    if (sheet) {
      this.canvas.width = COLUMNS * sheet.side;
      this.canvas.height = (ROWS + ITEM_ROWS) * sheet.side;
    }
  }

  async ready() {
    if (!this.sheet || this.image) return;
    const image = new Image();
    image.src = `data:image/png;base64,${this.sheet.png}`;
    await image.decode();
    this.image = image;
  }

  show(picture, legend, step) {
    if (picture && picture.cells && this.image) {
      this.draw(picture, legend, step);
      this.canvas.setAttribute("aria-label", told(picture, legend, step));
      this.put(this.canvas);
    } else if (picture && picture.screen) {
      this.write(picture.screen, legend.styles);
      this.put(this.screen);
    } else {
      this.put(made("p", "dim nothing", "no picture of this step"));
    }
  }

  put(element) {
    if (this.place.firstChild !== element) this.place.replaceChildren(element);
  }

  draw(picture, legend, step) {
    const side = this.sheet.side;
    const pen = this.canvas.getContext("2d", { willReadFrequently: true });
    pen.imageSmoothingEnabled = false;
    pen.fillStyle = "rgb(127,127,127)";
    pen.fillRect(0, 0, this.canvas.width, ROWS * side);
    for (let i = 0; i < COLUMNS * ROWS; i++) {
      const x = (i % COLUMNS) * side;
      const y = Math.floor(i / COLUMNS) * side;
      for (const name of legend.looks[picture.cells.charCodeAt(i) - FIRST]) this.texture(pen, name, x, y, side);
    }
    if (picture.light < 0.995 || picture.asleep) this.darken(pen, picture, step);
    pen.fillStyle = "black";
    pen.fillRect(0, ROWS * side, this.canvas.width, ITEM_ROWS * side);
    picture.items.forEach((amount, i) => {
      if (!amount) return;
      const x = (i % COLUMNS) * side;
      const y = (ROWS + Math.floor(i / COLUMNS)) * side;
      this.texture(pen, legend.items[i], x + Math.floor(0.1 * side), y + Math.floor(0.1 * side), Math.floor(0.8 * side));
      const digit = amount <= 9 ? String(amount) : "unknown";
      this.texture(pen, digit, x + Math.floor(0.4 * side), y + Math.floor(0.4 * side), Math.floor(0.6 * side));
    });
  }

  texture(pen, name, x, y, size) {
    const place = this.sheet.places[name] ?? this.sheet.places.unknown;
    const side = this.sheet.side;
    pen.drawImage(this.image, place[0] * side, place[1] * side, side, side, x, y, size, size);
  }

  // Night and sleep as the simulator paints them; the grain of the night is not the simulator's own.
  darken(pen, picture, step) {
    const side = this.sheet.side;
    const width = COLUMNS * side;
    const height = ROWS * side;
    const data = pen.getImageData(0, 0, width, height);
    const bytes = data.data;
    const day = picture.light;
    const grain = day < 0.5 ? 2 * (0.5 - day) : 0;
    let random = (step + 1) * 2654435761;
    for (let y = 0, i = 0; y < height; y++) {
      const v = (2 * y) / (height - 1) - 1;
      for (let x = 0; x < width; x++, i += 4) {
        let [r, g, b] = [bytes[i], bytes[i + 1], bytes[i + 2]];
        let [nr, ng, nb] = [r, g, b];
        if (grain) {
          const u = (2 * x) / (width - 1) - 1;
          const mask = grain * (1 - Math.exp(-2 * (u * u + v * v)));
          random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
          const noise = 32 + (95 * random) / 4294967296;
          nr += mask * (noise - nr);
          ng += mask * (noise - ng);
          nb += mask * (noise - nb);
        }
        const grey = 0.299 * nr + 0.587 * ng + 0.114 * nb;
        nr = (grey + 0.4 * (nr - grey)) * 0.5;
        ng = (grey + 0.4 * (ng - grey)) * 0.5 + 8;
        nb = (grey + 0.4 * (nb - grey)) * 0.5 + 32;
        r = day * r + (1 - day) * nr;
        g = day * g + (1 - day) * ng;
        b = day * b + (1 - day) * nb;
        if (picture.asleep) {
          const dull = (0.299 * r + 0.587 * g + 0.114 * b) * 0.5;
          [r, g, b] = [dull, dull, dull + 8];
        }
        bytes[i] = r;
        bytes[i + 1] = g;
        bytes[i + 2] = b;
      }
    }
    pen.putImageData(data, 0, 0);
  }

  write(rows, styles) {
    const lines = rows.map(([text, runs]) => {
      const line = document.createDocumentFragment();
      for (let i = 0, at = 0; i < runs.length; i += 2) {
        const piece = text.slice(at, at + runs[i]);
        at += runs[i];
        const [front, back, bold, dim] = styles[runs[i + 1]];
        if (!back && !piece.trim()) {
          line.append(piece);
          continue;
        }
        const span = made("span", bold ? "bold" : "", piece);
        if (front) span.style.color = front;
        if (back) span.style.backgroundColor = back;
        if (dim) span.style.opacity = "0.7";
        line.append(span);
      }
      line.append("\n");
      return line;
    });
    this.screen.replaceChildren(...lines);
  }
}

// Crafter's picture in words.
function told(picture, legend, step) {
  const centre = legend.looks[picture.cells.charCodeAt((COLUMNS * ROWS) >> 1) - FIRST];
  const facing = (centre.at(-1) ?? "").replace("player-", "facing ").replace("facing sleep", "asleep");
  const carried = picture.items.map((n, i) => (n ? `${legend.items[i].replaceAll("_", " ")} ${n}` : "")).filter(Boolean);
  const time = picture.light < 0.5 ? "night" : "day";
  return `Crafter's picture at step ${step}: the player ${facing}, ${time}; ${carried.join(", ")}`;
}
