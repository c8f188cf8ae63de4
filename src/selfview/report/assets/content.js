// What a row shows: its picture, recording, text or line of values.

const content = { places: {}, sheets: [] };

function startContent(facts, arrays) {
  content.facts = facts.content;
  content.arrays = arrays;
  for (const kind of ["picture", "sound", "text", "profile"]) {
    const rows = arrays[`${kind}Rows`];
    content.places[kind] = rows ? new Map(Array.from(rows, (row, i) => [row, i])) : new Map();
  }
}

const hasContent = (kind) => content.facts.kinds.includes(kind);

function sheet(number) {
  if (!content.sheets[number]) {
    const blob = new Blob([content.arrays[`sheet${number}`]], { type: "image/webp" });
    content.sheets[number] = createImageBitmap(blob);
  }
  return content.sheets[number];
}

function picture(row, side) {
  const place = content.places.picture.get(row);
  if (place === undefined) return null;
  const { width, height, across, sheet: perSheet, what } = content.facts.image;
  const scale = side / Math.max(width, height);
  const canvas = make("canvas", { className: "thumb", width, height, role: "img" });
  canvas.setAttribute("aria-label", `${what} of ${idOf(row)}`);
  canvas.style.width = `${Math.round(width * scale)}px`;
  canvas.style.height = `${Math.round(height * scale)}px`;
  const inSheet = place % perSheet;
  sheet(Math.floor(place / perSheet)).then((bitmap) => {
    canvas.getContext("2d").drawImage(bitmap, (inSheet % across) * width,
      Math.floor(inSheet / across) * height, width, height, 0, 0, width, height);
  });
  return canvas;
}

function textOf(row) {
  const place = content.places.text.get(row);
  return place === undefined ? null : content.facts.text.values[place];
}

// The line of a row: values at content.arrays.profileAxis.
function profile(row) {
  const place = content.places.profile.get(row);
  if (place === undefined) return null;
  const { profiles, profileLow, profileHigh } = content.arrays;
  const points = profiles.shape[1];
  const span = (profileHigh[place] - profileLow[place]) / 255;
  return Float32Array.from({ length: points },
    (_, i) => profileLow[place] + span * profiles[place * points + i]);
}

function sparkline(row, width, height) {
  const values = profile(row);
  if (!values) return null;
  const ratio = devicePixelRatio || 1;
  const canvas = make("canvas", { className: "spark", width: width * ratio,
    height: height * ratio, role: "img" });
  canvas.setAttribute("aria-label", `${content.facts.spectrum.what} of ${idOf(row)}`);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.strokeStyle = css("--accent");
  pen.lineWidth = 1.25;
  pen.beginPath();
  const low = Math.min(...values), span = Math.max(...values) - low || 1;
  values.forEach((value, i) => {
    const x = (i / Math.max(1, values.length - 1)) * (width - 2) + 1;
    const y = height - 2 - ((value - low) / span) * (height - 4);
    if (i) pen.lineTo(x, y); else pen.moveTo(x, y);
  });
  pen.stroke();
  return canvas;
}

function profileChart(row) {
  const values = profile(row);
  if (!values) return null;
  const { what, axis, names } = content.facts.spectrum;
  const box = make("div", { className: "chart", role: "img" });
  box.setAttribute("aria-label", `${what} of ${idOf(row)}`);
  const named = names.length > 0;
  const x = named ? names.map((_, i) => i + 1) : content.arrays.profileAxis;
  const bars = named || content.facts.spectrum.peaks;
  const trace = { type: bars ? "bar" : "scatter", mode: "lines", x, y: values,
    customdata: named ? names.map(plain) : undefined,
    hovertemplate: named ? "%{customdata}: %{y:.3g}<extra></extra>" : "%{x:.4~r}: %{y:.3~g}<extra></extra>",
    line: { color: css("--accent"), width: 1.2 }, marker: { color: css("--accent") } };
  if (bars && !named) trace.width = Array(values.length).fill(spanOf(x) / 220);
  const ticks = named && names.length <= 12
    ? { tickvals: x, ticktext: names.map((name) => plain(name.slice(0, 14))) } : {};
  requestAnimationFrame(() => Plotly.newPlot(box, [trace], chartLayout({ height: 170,
    margin: { l: 40, r: 6, t: 6, b: 34 },
    xaxis: { title: { text: named ? "" : axis, standoff: 4 }, ...ticks } }),
    { displayModeBar: false, responsive: true }));
  return make("figure", {}, make("figcaption", {}, capital(what)), box);
}

const spanOf = (values) => values[values.length - 1] - values[0] || 1;
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
// Plotly reads a few tags in its texts; data must not be able to write any.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

// --- recordings: IMA ADPCM, 256 bytes a block, as libsndfile writes it ---------------------

const STEPS = [7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55,
  60, 66, 73, 80, 88, 97, 107, 118, 130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371,
  408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060, 1166, 1282, 1411, 1552, 1707, 1878,
  2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630,
  9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767];
const CHANGES = [-1, -1, -1, -1, 2, 4, 6, 8];
const BLOCK = 256;

function samples(row) {
  const place = content.places.sound.get(row);
  if (place === undefined) return null;
  const { sounds, soundStarts } = content.arrays;
  const data = sounds.subarray(soundStarts[place], soundStarts[place + 1]);
  const out = new Int16Array((data.length / BLOCK) * (2 * (BLOCK - 4) + 1));
  let at = 0;
  for (let start = 0; start < data.length; start += BLOCK) {
    let value = (data[start] | (data[start + 1] << 8)) << 16 >> 16;
    let index = Math.min(data[start + 2], 88);
    out[at++] = value;
    for (let i = start + 4; i < start + BLOCK; i++) {
      for (const code of [data[i] & 15, data[i] >> 4]) {
        const step = STEPS[index];
        let change = step >> 3;
        if (code & 1) change += step >> 2;
        if (code & 2) change += step >> 1;
        if (code & 4) change += step;
        value = Math.max(-32768, Math.min(32767, value + (code & 8 ? -change : change)));
        index = Math.max(0, Math.min(88, index + CHANGES[code & 7]));
        out[at++] = value;
      }
    }
  }
  return out;
}

function wave(row) {
  const signal = samples(row);
  if (!signal) return null;
  const rate = content.facts.audio.rate;
  const head = new DataView(new ArrayBuffer(44));
  const word = (place, text) => [...text].forEach((c, i) => head.setUint8(place + i, c.charCodeAt(0)));
  word(0, "RIFF"); head.setUint32(4, 36 + signal.byteLength, true); word(8, "WAVEfmt ");
  head.setUint32(16, 16, true); head.setUint16(20, 1, true); head.setUint16(22, 1, true);
  head.setUint32(24, rate, true); head.setUint32(28, 2 * rate, true);
  head.setUint16(32, 2, true); head.setUint16(34, 16, true);
  word(36, "data"); head.setUint32(40, signal.byteLength, true);
  return URL.createObjectURL(new Blob([head, signal], { type: "audio/wav" }));
}

let player = null;
let playing = null;

function play(row) {
  const source = wave(row);
  if (!source) return;
  player = player || new Audio();
  player.pause();
  if (playing) URL.revokeObjectURL(playing);
  playing = source;
  player.src = source;
  player.play().catch(() => { /* browsers wait for a click before they make a sound */ });
}

function audioControls(row) {
  const source = wave(row);
  if (!source) return null;
  const element = make("audio", { controls: true, src: source, preload: "auto" });
  element.setAttribute("aria-label", `Recording ${idOf(row)}`);
  return element;
}

// The content of a row: small for a tip, full for the panel.
function contentOf(row, full) {
  const parts = [];
  if (hasContent("image")) parts.push(picture(row, full ? 168 : 84));
  if (hasContent("audio") && full) parts.push(audioControls(row));
  if (hasContent("audio") && !full && content.places.sound.has(row))
    parts.push(make("span", { className: "hint" }, "♪ click to play"));
  const text = hasContent("text") ? textOf(row) : null;
  if (text !== null) parts.push(make("p", { className: "snippet", dir: "auto" }, full ? text : short(text, 200)));
  if (hasContent("spectrum")) parts.push(full ? profileChart(row) : sparkline(row, 180, 48));
  return parts.filter(Boolean);
}
