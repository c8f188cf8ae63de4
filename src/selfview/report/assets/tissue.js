// Rows in their places: the embedding as colour, regions, one ion; and mean spectra.

const tissue = { facts: null, region: null, column: null, ion: 0 };
const DIM = 0.18; // what a selection leaves of the other pixels

function startTissue(facts, arrays) {
  if (!facts.tissue) return;
  tissue.facts = facts.tissue;
  tissue.arrays = arrays;
  tissue.ions = rows.columns.filter(({ feature }) => feature !== undefined);
  const { width, height, regions } = facts.tissue;
  tissue.rowAt = new Int32Array(width * height).fill(-1);
  for (let row = 0; row < rows.n; row++) tissue.rowAt[placeOf(row)] = row;
  for (const name of regions) {
    const column = namedColumn(name);
    byId("regions").append(make("option", { value: name }, column.title));
  }
  tissue.column = namedColumn(regions.includes("cluster") ? "cluster" : regions[0]);
  byId("regions").value = tissue.column.name;
  byId("regions").addEventListener("change", (event) => {
    tissue.column = namedColumn(event.target.value);
    tissue.region = null;
    drawTissue();
  });
  tissue.ions.forEach((ion, i) => byId("ion").append(make("option", { value: i }, ion.title)));
  byId("ion-slider").max = Math.max(0, tissue.ions.length - 1);
  tissue.ion = strongestIon();
  byId("ion").addEventListener("change", (event) => showIon(Number(event.target.value)));
  byId("ion-slider").addEventListener("input", (event) => showIon(Number(event.target.value)));
  for (const id of ["tissue-rgb", "tissue-regions", "tissue-ion"]) {
    const canvas = byId(id);
    canvas.width = width;
    canvas.height = height;
    canvas.style.aspectRatio = `${width} / ${height}`;
    canvas.addEventListener("click", (event) => clickPixel(canvas, event));
    canvas.addEventListener("mousemove", (event) => {
      const row = rowUnder(canvas, event);
      canvas.title = row < 0 ? "" : `${idOf(row)}: ${valueOf(tissue.column, row)}`;
    });
  }
  map.listeners.push((what) => {
    if ("column" in what && what.column.parts && tissue.column.parts) {
      tissue.region = null; // the number of clusters may be another
      drawTissue();
    } else if ("selected" in what || "focus" in what) {
      drawImages();
      if ("selected" in what) drawSpectrum();
    }
  });
  themeListeners.push(drawTissue);
  drawTissue();
}

const placeOf = (row) => tissue.arrays.places[2 * row + 1] * tissue.facts.width
  + tissue.arrays.places[2 * row];

function rowUnder(canvas, event) {
  const box = canvas.getBoundingClientRect();
  const x = Math.floor(((event.clientX - box.left) / box.width) * canvas.width);
  const y = Math.floor(((event.clientY - box.top) / box.height) * canvas.height);
  return tissue.rowAt[y * canvas.width + x] ?? -1;
}

function clickPixel(canvas, event) {
  const row = rowUnder(canvas, event);
  if (row < 0) return;
  showRegion(tissue.column.codes[row]);
  change({ focus: row });
}

function paint(id, colour) {
  const canvas = byId(id);
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(canvas.width, canvas.height);
  const chosen = map.selected ? new Set(map.selected) : null;
  for (let row = 0; row < rows.n; row++) {
    const place = 4 * placeOf(row);
    const [red, green, blue] = colour(row);
    image.data[place] = red;
    image.data[place + 1] = green;
    image.data[place + 2] = blue;
    image.data[place + 3] = chosen && !chosen.has(row) ? 255 * DIM : 255;
  }
  pen.putImageData(image, 0, 0);
  if (map.focus !== null) {
    const place = placeOf(map.focus), x = place % canvas.width, y = Math.floor(place / canvas.width);
    pen.strokeStyle = css("--ink");
    pen.lineWidth = Math.max(1, canvas.width / 160);
    pen.strokeRect(x - 2, y - 2, 5, 5);
  }
}

function drawImages() {
  const { rgb } = tissue.arrays;
  paint("tissue-rgb", (row) => [rgb[3 * row], rgb[3 * row + 1], rgb[3 * row + 2]]);
  const colours = tissue.column.names.map((_, i) => rgbOf(hex(colourOfSlot(slots(tissue.column)[i]))));
  const faded = colours.map((colour, i) => tissue.region === null || tissue.region === i ? colour
    : colour.map((value) => Math.round(value * 0.3 + 0.7 * rgbOf(hex(css("--surface")))[0])));
  paint("tissue-regions", (row) => faded[tissue.column.codes[row]]);
  const ion = tissue.ions[tissue.ion];
  if (!ion) return;
  const { values } = ion;
  const sorted = Float32Array.from(values).sort();
  const low = sorted[0], high = sorted[Math.floor(0.995 * (sorted.length - 1))] || low + 1;
  const scale = Array.from({ length: 256 }, (_, i) => shade(i / 255));
  paint("tissue-ion", (row) =>
    scale[Math.max(0, Math.min(255, Math.round((255 * (values[row] - low)) / (high - low || 1))))]);
  byId("ion").value = tissue.ion;
  byId("ion-slider").value = tissue.ion;
  byId("ion-slider").setAttribute("aria-valuetext", ion.title);
  byId("tissue-ion").setAttribute("aria-label", `Image of ${ion.title}`);
  const bar = make("span", { className: "gradient" });
  bar.style.background = `linear-gradient(to right, ${VIRIDIS.join(",")})`;
  byId("ion-scale").replaceChildren(make("span", {}, format(low)), bar, make("span", {}, format(high)));
}

const hex = (colour) => /^#[0-9a-f]{6}$/i.test(colour) ? colour : "#808080";

function showIon(number) {
  tissue.ion = number;
  drawImages();
  drawSpectrum();
}

function showRegion(code) {
  tissue.region = code;
  drawTissue();
}

function drawTissue() {
  const { column } = tissue;
  slots(column);
  byId("region-list").replaceChildren(...column.names.map((name, code) => {
    const dot = make("span", { className: "glyph" }, "●");
    dot.setAttribute("aria-hidden", "true");
    dot.style.color = colourOfSlot(slots(column)[code]);
    const chip = make("button", { type: "button", className: "chip" }, dot,
      make("span", { dir: "auto" }, short(name, 24)));
    chip.setAttribute("aria-pressed", tissue.region === code);
    chip.addEventListener("click", () => showRegion(tissue.region === code ? null : code));
    return chip;
  }));
  drawImages();
  drawSpectrum();
}

// The ion of most contrast, to begin with something to see.
function strongestIon() {
  let best = 0, most = -1;
  tissue.ions.forEach(({ values }, i) => {
    let sum = 0, squares = 0;
    for (const value of values) { sum += value; squares += value * value; }
    const mean = sum / rows.n;
    const merit = mean > 0 ? (squares / rows.n - mean * mean) / mean : 0;
    if (merit > most) { most = merit; best = i; }
  });
  return best;
}

function regionSpectrum() {
  const spectra = tissue.arrays[`region ${tissue.column.name}`];
  const points = spectra.shape[1];
  const { parts } = tissue.column; // clusters have a spectrum for each part of their tree
  const place = parts ? parts[tissue.region] : tissue.region;
  return spectra.subarray(place * points, (place + 1) * points);
}

// The mean of the selected rows, at the features that the page keeps of every row.
function selectedSpectrum() {
  const x = Float32Array.from(tissue.ions, ({ position }) => position);
  const mean = (of) => Float32Array.from(tissue.ions, ({ at }) =>
    of.reduce((sum, row) => sum + at(row), 0) / of.length);
  tissue.allMean = tissue.allMean || mean(Array.from({ length: rows.n }, (_, row) => row));
  const order = Array.from(x.keys()).sort((a, b) => x[a] - x[b]);
  const sorted = (values) => Float32Array.from(order, (i) => values[i]);
  return { x: sorted(x), own: sorted(mean(map.selected)), all: sorted(tissue.allMean) };
}

function drawSpectrum() {
  const selected = map.selected && tissue.ions.length ? selectedSpectrum() : null;
  const x = selected ? selected.x : tissue.arrays.tissueAxis;
  const mean = selected ? selected.all : tissue.arrays.tissueMean;
  const chosen = selected !== null || tissue.region !== null;
  const count = selected ? map.selected.length.toLocaleString("en") : "";
  const name = selected ? `the ${count} selected rows`
    : chosen ? tissue.column.names[tissue.region] : "all pixels";
  const spectrum = selected ? selected.own : chosen ? regionSpectrum() : mean;
  const { axis, names } = tissue.facts, isSpectrum = axis === "m/z";
  byId("spectrum-title").textContent = `${isSpectrum ? "Mean spectrum" : "Mean features"} of ${name}`;
  // Few points are peaks, each a stem of its own; many are a line.
  const stems = x.length <= 300;
  const line = (y, label, colour, behind) => {
    const shared = { name: label, hovertemplate: "%{x:.6~r}: %{y:.4~g}<extra></extra>" };
    if (!stems) return { ...shared, type: "scatter", mode: "lines", x, y, line: { color: colour, width: behind ? 1 : 1.4 } };
    return { ...shared, type: "bar", x, y, marker: { color: colour },
      width: Array(x.length).fill(spanOf(x) / (behind ? 160 : 360)) };
  };
  const colour = chosen && !selected ? colourOfSlot(slots(tissue.column)[tissue.region]) : css("--accent");
  const data = [line(mean, "all pixels", chosen ? css("--faint") : colour, chosen)];
  if (chosen) data.push(line(spectrum, plain(name), colour, false));
  const ion = tissue.ions[tissue.ion];
  const shapes = ion ? [{ type: "line", x0: ion.position, x1: ion.position, yref: "paper", y0: 0,
    y1: 1, line: { color: css("--soft"), width: 1, dash: "dot" } }] : [];
  const box = byId("spectrum");
  const first = !box.data;
  Plotly.react(box, data, chartLayout({ height: 260, barmode: "overlay", showlegend: chosen,
    legend: { x: 1, xanchor: "right", y: 1, bgcolor: "rgba(0,0,0,0)" }, shapes,
    xaxis: { title: { text: axis, standoff: 6 }, fixedrange: false,
      ...(names.length && names.length <= 12 ? { tickvals: [...x], ticktext: [...x].map((i) => plain(nameAt(i).slice(0, 14))) } : {}) },
    yaxis: { title: { text: isSpectrum ? "mean intensity" : "mean", standoff: 6 }, rangemode: "tozero" } }),
  { displayModeBar: false, responsive: true });
  if (first) box.on("plotly_click", ({ points }) => showIon(nearestIon(points[0].x)));
  fillPeaks(spectrum, x, mean);
}

const nearestIon = (position) => tissue.ions.reduce((best, ion, i) =>
  Math.abs(ion.position - position) < Math.abs(tissue.ions[best].position - position) ? i : best, 0);

// The m/z, or the name of the feature of this number.
const nameAt = (position) => tissue.facts.names.length
  ? tissue.facts.names[Math.round(position) - 1] : position.toFixed(2);

function fillPeaks(spectrum, x, mean) {
  const order = Array.from(spectrum.keys()).sort((a, b) => spectrum[b] - spectrum[a]).slice(0, 8);
  byId("peaks").tBodies[0].replaceChildren(...order.map((i) => {
    const cell = (text) => make("td", { className: "num" }, text);
    const ion = make("button", { type: "button", className: "link" }, nameAt(x[i]));
    ion.addEventListener("click", () => showIon(nearestIon(x[i])));
    ion.setAttribute("aria-label", `Show the image of ${nameAt(x[i])}`);
    return make("tr", {}, make("th", { scope: "row" }, ion), cell(format(spectrum[i])),
      cell(format(mean[i])), cell(mean[i] ? `${(spectrum[i] / mean[i]).toFixed(2)}×` : "–"));
  }));
}
