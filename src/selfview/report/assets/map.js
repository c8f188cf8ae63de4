// The map: points, their colours, the tools that move it, and the tip under the pointer.

const WITHOUT_WEBGL = 15000; // points that a browser draws one by one without pain
const MOST_NAMED = 24; // categories with their name on the map
const FEW = 200; // points, below which names stand over theirs and not on them
const map = { column: null, selected: null, focus: null, shown: null, listeners: [] };

function startMap(facts, arrays) {
  map.plot = byId("plot");
  map.points = arrays.points;
  map.webgl = Boolean(document.createElement("canvas").getContext("webgl2")
    || document.createElement("canvas").getContext("webgl"));
  map.shown = shownRows();
  map.x = Float32Array.from(map.shown, px);
  map.y = Float32Array.from(map.shown, py);
  map.size = rows.n > 50000 ? 3 : rows.n > 10000 ? 4 : rows.n > 3000 ? 5 : rows.n > 400 ? 6.5 : 9;
  byId("size").value = map.size;
  const options = {};
  for (const column of rows.columns) {
    options[column.group] = options[column.group] || make("optgroup", { label: column.group });
    options[column.group].append(make("option", { value: column.key }, column.title));
  }
  byId("colour").append(...Object.values(options));
  map.column = rows.columns[0];
  return drawMap().then(listenToMap);
}

// With WebGL all rows; without it as many as plain drawing bears, evenly spaced.
function shownRows() {
  const count = map.webgl ? rows.n : Math.min(rows.n, WITHOUT_WEBGL);
  if (!map.webgl && count < rows.n) {
    byId("webgl").hidden = false;
    byId("webgl").textContent = `This browser has no WebGL: ${count.toLocaleString("en")} of the `
      + `${rows.n.toLocaleString("en")} points are drawn, evenly spaced.`;
  }
  return Int32Array.from({ length: count },
    (_, i) => (count === rows.n ? i : Math.round((i * (rows.n - 1)) / (count - 1))));
}

const px = (row) => map.points[2 * row];
const py = (row) => map.points[2 * row + 1];

// Made anew only when the column, the size or the theme has changed: arrays of all points are slow.
function markers() {
  const key = `${map.column.key} ${clusters.number} ${map.size} ${themeNow()}`;
  if (map.markerKey !== key) Object.assign(map, { markerKey: key, marker: freshMarkers() });
  return map.marker;
}

function freshMarkers() {
  const { column } = map;
  const shared = { size: map.size, opacity: rows.n > 20000 ? 0.6 : 0.85, line: { width: 0 },
    showscale: false, symbol: "circle" };
  if (column.kind === "rgb") {
    return { ...shared, color: Array.from(map.shown, (row) =>
      `rgb(${column.rgb[3 * row]},${column.rgb[3 * row + 1]},${column.rgb[3 * row + 2]})`) };
  }
  if (column.kind === "numbers") {
    const { values } = column;
    const [low, high] = rangeOf(values);
    return { ...shared, color: Array.from(map.shown, (row) => values[row]), cmin: low, cmax: high,
      colorscale: numberColours().map((colour, i, all) => [i / (all.length - 1), colour]) };
  }
  const slot = slots(column);
  const used = Math.min(1 + Math.max(...slot.filter((i) => i < MOST_COLOURED)), MOST_COLOURED) + 1;
  const last = used - 1; // the grey of all others
  const colours = Array.from({ length: used },
    (_, i) => colourOfSlot(i === last ? MOST_COLOURED : i));
  const symbols = used > PALETTES.light.length + 1
    ? Array.from(map.shown, (row) => SYMBOLS[symbolOfSlot(slot[column.codes[row]])]) : "circle";
  return { ...shared, symbol: symbols, cmin: 0, cmax: used,
    color: Array.from(map.shown, (row) => Math.min(slot[column.codes[row]], last) + 0.5),
    colorscale: colours.flatMap((colour, i) => [[i / used, colour], [(i + 1) / used, colour]]) };
}

function rangeOf(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return high > low ? [low, high] : [low - 0.5, low + 0.5];
}

// A name for each category, at the row nearest to the middle of its kind.
function names(shown) {
  const { column } = map;
  if (!byId("names").checked || column.kind !== "categories") return [];
  if (column.names.length > MOST_NAMED) return [];
  const longest = Math.min(22, Math.round(byId("frame").clientWidth / 24));
  const groups = column.names.map(() => []);
  for (const row of map.shown) groups[column.codes[row]].push(row);
  const above = rows.n < FEW ? map.size / 2 + 12 : 0; // over one point of few, a name would hide it
  const middle = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  return groups.flatMap((group, code) => {
    if (!group.length) return [];
    const step = Math.ceil(group.length / 2000);
    const some = group.filter((_, i) => i % step === 0);
    const x = middle(some.map(px)), y = middle(some.map(py));
    const far = (row) => (px(row) - x) ** 2 + (py(row) - y) ** 2;
    const nearest = some.reduce((a, b) => (far(b) < far(a) ? b : a));
    const text = plain(short(column.names[code], longest));
    return [{ x: px(nearest), y: py(nearest), showarrow: false, captureevents: false,
      text, xanchor: anchorOf(nearest, text, shown), borderpad: 2.5, yshift: above,
      font: { size: 12, color: css("--ink"), family: css("--sans") },
      bgcolor: css("--veil"), bordercolor: colourOfSlot(slots(column)[code]), borderwidth: 1.5 }];
  });
}

// The side of its row on which a name stands, so that the edge of the frame doesn't cut it off.
function anchorOf(row, text, [low, high]) {
  const { width } = byId("frame").getBoundingClientRect();
  const half = 3.6 * text.length + 8, at = ((px(row) - low) / (high - low)) * width;
  if (at < 0 || at > width) return "center";
  return at < half ? "left" : at > width - half ? "right" : "center";
}

const short = (text, length) => text.length > length ? `${text.slice(0, length - 1)}…` : text;

function traces() {
  const type = map.webgl ? "scattergl" : "scatter";
  const ring = { type, mode: "lines+markers", hoverinfo: "skip", x: [], y: [],
    line: { color: css("--ink"), width: 1 },
    marker: { size: map.size + 7, symbol: "circle-open", color: css("--ink"), line: { width: 2 } } };
  if (map.focus !== null) {
    for (const { row } of map.near) {
      ring.x.push(px(map.focus), px(row), null);
      ring.y.push(py(map.focus), py(row), null);
    }
    if (!map.near.length) { ring.x.push(px(map.focus)); ring.y.push(py(map.focus)); }
  }
  const points = { type, mode: "markers", hoverinfo: "none", marker: markers(),
    x: map.x, y: map.y, selected: { marker: { opacity: 0.95 } }, unselected: { marker: { opacity: 0.06 } } };
  if (map.selected) {
    const wanted = new Set(map.selected);
    points.selectedpoints = [];
    map.shown.forEach((row, i) => { if (wanted.has(row)) points.selectedpoints.push(i); });
  }
  return [points, ring];
}

function mapLayout() {
  const hidden = { visible: false, fixedrange: false, zeroline: false };
  const old = map.plot.layout, whole = wholeRanges();
  const keep = (name) => (old && old[name] && old[name].range ? { range: [...old[name].range] } : {});
  return chartLayout({ margin: { l: 0, r: 0, t: 0, b: 0 }, autosize: true,
    dragmode: map.tool || "pan", hoverdistance: 12,
    xaxis: { ...hidden, range: whole[0], ...keep("xaxis") },
    yaxis: { ...hidden, range: whole[1], ...keep("yaxis") },
    annotations: names(keep("xaxis").range || whole[0]), uirevision: "map", selections: [],
    newselection: { line: { color: css("--accent"), width: 1.5, dash: "solid" } } });
}

function drawMap() {
  return Plotly.react(map.plot, traces(), mapLayout(),
    { scrollZoom: true, displayModeBar: false, responsive: true, doubleClick: false });
}

function zoom(factor, dx = 0, dy = 0) {
  const { xaxis, yaxis } = map.plot.layout;
  const moved = ({ range: [low, high] }, shift) => {
    const middle = (low + high) / 2 + shift * (high - low), half = ((high - low) / 2) * factor;
    return [middle - half, middle + half];
  };
  return Plotly.relayout(map.plot,
    { "xaxis.range": moved(xaxis, dx), "yaxis.range": moved(yaxis, dy) });
}

const showAll = () => {
  const [x, y] = wholeRanges();
  return Plotly.relayout(map.plot, { "xaxis.range": x, "yaxis.range": y });
};

// The ranges in which all points fill the frame. One axis may be stretched, but by no more than
// half: the axes have no unit, and yet clusters should keep their shape.
const STRETCH = 1.5, EDGE = 24; // pixels
function wholeRanges() {
  const { width, height } = byId("frame").getBoundingClientRect();
  const ends = [rangeOf(map.x), rangeOf(map.y)];
  const scale = ends.map(([low, high], i) =>
    Math.max(20, [width, height][i] - 2 * EDGE) / (high - low));
  const least = Math.min(...scale);
  return ends.map(([low, high], i) => {
    const half = [width, height][i] / Math.min(scale[i], STRETCH * least) / 2;
    return [(low + high) / 2 - half, (low + high) / 2 + half];
  });
}

function setTool(tool) {
  map.tool = tool;
  byId("tool-pan").setAttribute("aria-pressed", tool === "pan");
  byId("tool-lasso").setAttribute("aria-pressed", tool === "lasso");
  return Plotly.relayout(map.plot, { dragmode: tool });
}

// The one place where what is seen changes: tell the map and everyone who follows it.
function change(what) {
  Object.assign(map, what);
  if ("focus" in what) map.near = map.focus === null ? [] : neighbours(map.focus, 10);
  for (const listener of map.listeners) listener(what);
  return drawMap();
}

function listenToMap() {
  byId("colour").addEventListener("change", (event) =>
    change({ column: columnOf(event.target.value), selected: null }));
  byId("names").addEventListener("change", drawMap);
  byId("size").addEventListener("input", (event) => {
    map.size = Number(event.target.value);
    drawMap();
  });
  byId("tool-pan").addEventListener("click", () => setTool("pan"));
  byId("tool-lasso").addEventListener("click", () => setTool("lasso"));
  byId("zoom-in").addEventListener("click", () => zoom(0.6));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 0.6));
  byId("zoom-all").addEventListener("click", showAll);
  map.plot.on("plotly_click", ({ points }) => {
    const point = points.find(({ curveNumber }) => curveNumber === 0);
    if (point) change({ focus: map.shown[point.pointNumber] });
  });
  map.plot.on("plotly_selected", (event) => {
    if (!event || !event.points) return;
    const found = event.points.filter(({ curveNumber }) => curveNumber === 0)
      .map(({ pointNumber }) => map.shown[pointNumber]);
    change({ selected: found.length ? found : null });
  });
  map.plot.on("plotly_hover", ({ points, event }) => {
    const point = points.find(({ curveNumber }) => curveNumber === 0);
    if (point) showTip(map.shown[point.pointNumber], event);
  });
  map.plot.on("plotly_unhover", hideTip);
  map.plot.on("plotly_doubleclick", showAll);
  byId("frame").addEventListener("mouseleave", hideTip);
  byId("frame").addEventListener("keydown", mapKey);
  themeListeners.push(drawMap);
}

function mapKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const act = {
    ArrowLeft: () => zoom(1, -0.15), ArrowRight: () => zoom(1, 0.15),
    ArrowUp: () => zoom(1, 0, 0.15), ArrowDown: () => zoom(1, 0, -0.15),
    "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: showAll,
    Enter: () => change({ focus: middleRow() }),
    Escape: () => change({ focus: null, selected: null }),
    l: () => setTool("lasso"), p: () => setTool("pan"),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function middleRow() {
  const middle = (axis) => (map.plot.layout[axis].range[0] + map.plot.layout[axis].range[1]) / 2;
  const x = middle("xaxis"), y = middle("yaxis");
  const far = (row) => (px(row) - x) ** 2 + (py(row) - y) ** 2;
  return map.shown.reduce((a, b) => (far(b) < far(a) ? b : a));
}

function showTip(row, event) {
  const tip = byId("tip"), frame = byId("frame").getBoundingClientRect();
  const { column } = map;
  tip.replaceChildren(make("strong", { dir: "auto" }, short(idOf(row), 80)),
    make("span", { className: "value", dir: "auto" },
      `${column.title}: ${short(valueOf(column, row), 60)}`), ...contentOf(row, false));
  tip.dataset.row = row;
  tip.hidden = false;
  const touch = event && event.changedTouches ? event.changedTouches[0] : event;
  const x = (touch ? touch.clientX : frame.left) - frame.left;
  const y = (touch ? touch.clientY : frame.top) - frame.top;
  tip.style.left = `${Math.max(4, x + 16 + tip.offsetWidth > frame.width ? x - tip.offsetWidth - 12 : x + 16)}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 12, frame.height - tip.offsetHeight - 4))}px`;
  if (byId("sound") && byId("sound").checked) play(row);
}

function hideTip() {
  byId("tip").hidden = true;
}
