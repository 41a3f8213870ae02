"use strict";
(() => {
  // What a cell is sorted by: its figure, or the text of a name; undefined where there is none.
  const key = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return undefined;
    if (cell.dataset.value === undefined) return cell.tagName === "TH" ? cell.textContent.trim().toLowerCase() : undefined;
    return cell.dataset.value === "" ? undefined : Number(cell.dataset.value);
  };
  // Each part of a table is sorted by itself: published figures are never ranked together with ours.
  const sort = (table, column, down) => {
    for (const part of table.tBodies) {
      const rows = [...part.rows].filter((row) => !row.classList.contains("head"));
      const keyed = rows.map((row) => [key(row, column), row]);
      keyed.sort(([a], [b]) => {
        if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
        return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
      });
      part.append(...keyed.map(([, row]) => row));
    }
  };
  for (const head of document.querySelectorAll("th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const figures = head.classList.contains("number");
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : figures;
      for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(head.closest("table"), head.cellIndex, down);
    });
  }
  for (const button of document.querySelectorAll("[data-opens]")) {
    const part = document.getElementById(button.dataset.opens);
    const words = button.textContent;
    const show = (open) => {
      part.classList.toggle("closed", !open);
      button.setAttribute("aria-expanded", String(open));
      button.textContent = (open ? "Hide " : "Show ") + words;
    };
    button.hidden = false;
    show(false);
    button.addEventListener("click", () => show(part.classList.contains("closed")));
  }
})();
