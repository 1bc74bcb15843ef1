"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

// --- pictures: point at them, or walk along them with the arrow keys
function walkable(name, points) {
  const svg = at(name), told = at(name + "-told"), mark = svg.querySelector(".here");
  let here = -1;
  function go(k) {
    here = Math.max(0, Math.min(points.x.length - 1, k));
    mark.setAttribute("cx", points.x[here]);
    mark.setAttribute("cy", points.y[here]);
    told.textContent = points.told[here];
  }
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
    const x = (event.clientX - box.left) * view.width / box.width;
    const y = (event.clientY - box.top) * view.height / box.height;
    let best = 0, least = Infinity;
    points.x.forEach((px, k) => {
      const d = (px - x) ** 2 + (points.y[k] - y) ** 2;
      if (d < least) { least = d; best = k; }
    });
    go(best);
  });
  const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 50, PageDown: -50 };
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Home") go(0);
    else if (event.key === "End") go(points.x.length - 1);
    else if (event.key in step) go(here + step[event.key]);
    else return;
    event.preventDefault();
  });
}
for (const name of ["margins", "left-out"]) if (data[name]) walkable(name, data[name]);

// --- samples: sorted by a column, filtered by words
function cellValue(row, column) {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
}
function compare(a, b, sign) {
  // cells that hold nothing are last, whichever way
  if (a === "" || b === "") return (a === "") - (b === "");
  if (typeof a === "number" && typeof b === "number") return sign * ((a > b) - (a < b));
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return sign * a.localeCompare(b, undefined, { numeric: true });
}
function sortable(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    // the first look at a column is at its largest numbers, or at the beginning of the alphabet
    const now = head.getAttribute("aria-sort");
    const numbers = [...body.rows].some((row) => row.cells[column].dataset.value !== undefined);
    const up = now === "none" ? !numbers : now === "descending";
    heads.forEach((one) => one.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...body.rows].sort((a, b) =>
      compare(cellValue(a, column), cellValue(b, column), up ? 1 : -1));
    body.append(...rows);
  }));
}
function filterable(table, field, found) {
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of table.tBodies[0].rows) {
      // cells apart: a word must not be found across two of them
      const text = [...row.cells].map((cell) => cell.textContent).join("\n").toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      count += !row.hidden;
    }
    found.textContent = ` ${count} rows`;
  });
}
if (at("samples")) {
  sortable(at("samples"));
  filterable(at("samples"), at("filter"), at("found"));
}

// --- the path: a slider over its levels
if (data.path) {
  const line = at("path").querySelector(".upright"), values = at("path-values").querySelectorAll(".value");
  const show = () => {
    const k = Number(at("level").value);
    line.setAttribute("x1", data.path.x[k]);
    line.setAttribute("x2", data.path.x[k]);
    at("level-told").textContent = data.path.levels[k];
    values.forEach((value, j) => { value.textContent = data.path.values[k][j]; });
  };
  at("level").addEventListener("input", show);
  show();
}
