// Draws the list as the real market does: every cell is there, those in view are filled, and a
// cell that leaves the view is emptied again.
"use strict";

const FILL_AFTER_MS = 80;
const cells = document.getElementById("cells");
const bones = document.getElementById("bones").content.firstElementChild;
// A page of another look wants cells of that look.
const look = bones.dataset.testid.slice("item-cell".length);

function place(count) {
  cells.replaceChildren(...Array.from({ length: count }, () => bones.cloneNode(true)));
}

function watch(filled) {
  const number = new Map(Array.from(cells.children, (cell, index) => [cell, index]));
  const waiting = new Map();
  const observer = new IntersectionObserver((changes) => {
    for (const change of changes) {
      const cell = change.target;
      clearTimeout(waiting.get(cell));
      if (change.isIntersecting) {
        const fill = () => { cell.innerHTML = filled[number.get(cell)]; };
        waiting.set(cell, setTimeout(fill, FILL_AFTER_MS));
      } else {
        cell.replaceChildren(...bones.cloneNode(true).childNodes);
      }
    }
  }, { rootMargin: "-64px 0px -80px 0px" });
  for (const cell of cells.children) observer.observe(cell);
}

async function draw() {
  place(12);
  const reply = await fetch(`${document.body.dataset.cells}&look=${encodeURIComponent(look)}`);
  const page = await reply.json();
  document.getElementById("pager").innerHTML = page.pager;
  if (page.cells.length === 0) {
    cells.parentElement.innerHTML = page.empty;
    return;
  }
  place(page.cells.length);
  watch(page.cells);
}

draw();
