// Maps side by side: the same rows in every one, and a row that is pointed at marked in all.

const maps = { chosen: null, row: null };

function colours() {
  const { codes, values } = maps.arrays;
  if (codes) return Array.from(codes, (code) => palette()[code % palette().length]);
  if (!values) return Array(maps.facts.n).fill(css("--accent"));
  const known = values.filter(Number.isFinite);
  const low = Math.min(...known), span = Math.max(...known) - low || 1;
  return Array.from(values, (value) => Number.isFinite(value)
    ? `rgb(${shade((value - low) / span).join(",")})` : css("--faint"));
}

// Where each row stands in a map, in pixels of the page.
function placesOf(number) {
  const points = maps.arrays[`points${number}`], side = maps.side, edge = 10;
  return (row) => [edge + (points[2 * row] / 65535) * (side - 2 * edge),
    side - edge - (points[2 * row + 1] / 65535) * (side - 2 * edge)];
}

function drawOne(number) {
  const canvas = byId(`map-${number}`), ratio = devicePixelRatio || 1;
  const side = maps.side = canvas.clientWidth;
  canvas.width = canvas.height = side * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const place = placesOf(number), { codes } = maps.arrays;
  const radius = maps.facts.n > 1000 ? 1.8 : maps.facts.n > 300 ? 2.4 : 3.2;
  const isOut = (row) => maps.chosen !== null && codes[row] !== maps.chosen;
  for (let row = 0; row < maps.facts.n; row++) {
    const [x, y] = place(row);
    pen.globalAlpha = isOut(row) ? 0.06 : 0.85;
    pen.fillStyle = maps.colours[row];
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fill();
  }
  if (maps.row === null) return;
  const [x, y] = place(maps.row);
  pen.globalAlpha = 1;
  pen.strokeStyle = css("--ink");
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(x, y, radius + 5, 0, 2 * Math.PI);
  pen.stroke();
}

function drawAll() {
  maps.colours = colours();
  maps.facts.titles.forEach((_, number) => drawOne(number));
}

function point(number, event) {
  const box = byId(`map-${number}`).getBoundingClientRect(), place = placesOf(number);
  let best = 144, row = null; // squared pixels
  for (let other = 0; other < maps.facts.n; other++) {
    const [x, y] = place(other);
    const far = (event.clientX - box.left - x) ** 2 + (event.clientY - box.top - y) ** 2;
    if (far < best) { best = far; row = other; }
  }
  mark(row);
}

function mark(row) {
  if (row === maps.row) return;
  maps.row = row;
  const { ids, names } = maps.facts, { codes, values } = maps.arrays;
  const label = row === null ? "" : codes ? `: ${names[codes[row]]}` : values ? `: ${format(values[row])}` : "";
  byId("pointed").textContent = row === null ? "\u00a0" : ids[row] + label;
  drawAll();
}

function startLegend() {
  byId("legend").append(...maps.facts.names.map((name, code) => {
    const glyph = make("span", { className: "glyph" }, "●");
    glyph.setAttribute("aria-hidden", "true");
    const chip = make("button", { type: "button", className: "chip" }, glyph,
      make("span", { dir: "auto" }, name));
    chip.setAttribute("aria-pressed", "false");
    chip.addEventListener("click", () => {
      maps.chosen = maps.chosen === code ? null : code;
      [...byId("legend").children].forEach((other, i) =>
        other.setAttribute("aria-pressed", i === maps.chosen));
      drawAll();
    });
    return chip;
  }));
}

function paintLegend() {
  [...byId("legend").children].forEach((chip, code) => {
    chip.firstChild.style.color = palette()[code % palette().length];
  });
}

async function begin() {
  startTheme();
  startScrolls();
  if (typeof DecompressionStream === "undefined") {
    byId("trouble").textContent = "The maps need a browser of 2023 or later; the table does not.";
    byId("trouble").hidden = false;
    return;
  }
  Object.assign(maps, unpack(await inflate("payload")));
  byId("payload").remove();
  startLegend();
  maps.facts.titles.forEach((_, number) => {
    byId(`map-${number}`).addEventListener("pointermove", (event) => point(number, event));
    byId(`map-${number}`).addEventListener("pointerleave", () => mark(null));
  });
  const draw = () => { paintLegend(); drawAll(); };
  themeListeners.push(draw);
  addEventListener("resize", draw);
  draw();
  document.documentElement.dataset.ready = "true";
  window.selfview = { maps, mark };
}

begin();
