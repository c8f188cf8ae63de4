// The rows: their ids, columns, and neighbours in the embedding.

const rows = { n: 0, columns: [] };
const OURS = ["label", "group", "cluster", "prototype", "split"]; // other columns keep their names

function startRows(facts, arrays) {
  rows.n = facts.n;
  rows.ids = facts.ids;
  rows.embedding = arrays.embedding;
  rows.dim = arrays.embedding.shape[1];
  rows.columns = facts.columns.map((column, i) => ({ ...column, key: `c${i}`,
    title: OURS.includes(column.name) ? capital(column.name) : column.name, kind: column.names ? "categories" : "numbers",
    codes: arrays[`column${i}`], values: arrays[`column${i}`] }));
  if (arrays.rgb) rows.columns.push({ key: "rgb", group: "Columns", kind: "rgb", name: "rgb",
    title: "Embedding as colour", rgb: arrays.rgb });
  (facts.features || []).forEach((name, i) => {
    const most = arrays.features instanceof Uint8Array ? 255 : 65535;
    const low = arrays.featureLow[i], span = arrays.featureHigh[i] - low;
    const codes = arrays.features.subarray(i * rows.n, (i + 1) * rows.n);
    rows.columns.push({ key: `f${i}`, group: facts.tissue ? "Ions" : "Data", name, title: name,
      kind: "numbers", position: arrays.featurePositions[i], feature: i,
      get values() { return Float32Array.from(codes, (code) => low + (span * code) / most); },
      at: (row) => low + (span * codes[row]) / most });
  });
  for (let i = 0; i < Math.min(rows.dim, 32); i++) {
    rows.columns.push({ key: `z${i}`, group: "Embedding", name: `z${i}`, title: `Dimension ${i + 1}`,
      kind: "numbers",
      get values() { return Float32Array.from({ length: rows.n },
        (_, row) => rows.embedding[row * rows.dim + i]); } });
  }
}

const idOf = (row) => (rows.ids ? rows.ids[row] : `row ${row}`);
const columnOf = (key) => rows.columns.find((column) => column.key === key);
const namedColumn = (name) => rows.columns.find((column) => column.name === name);

function valueOf(column, row) {
  if (column.kind === "categories") return column.names[column.codes[row]];
  if (column.kind === "rgb") return `${[0, 1, 2].map((i) => column.rgb[3 * row + i]).join(", ")}`;
  return formatOf(column)(column.at ? column.at(row) : column.values[row]);
}

// How the numbers of a column are written; those of a date are days since 1970.
const formatOf = (column) => (column.date ? formatDate : format);

function formatDate(days) {
  if (Number.isNaN(days)) return "(missing)";
  const text = new Date(days * 864e5).toISOString();
  return days % 1 ? text.slice(0, 16).replace("T", " ") : text.slice(0, 10);
}

// The k rows nearest in the embedding (Euclidean), nearest first, each with its distance.
function neighbours(row, k) {
  const { embedding, dim, n } = rows;
  const best = [];
  for (let other = 0; other < n; other++) {
    if (other === row) continue;
    let sum = 0;
    for (let i = 0; i < dim; i++) {
      const difference = embedding[other * dim + i] - embedding[row * dim + i];
      sum += difference * difference;
    }
    if (best.length === k && sum >= best[k - 1].sum) continue;
    let place = best.length;
    while (place > 0 && best[place - 1].sum > sum) place--;
    best.splice(place, 0, { row: other, sum });
    if (best.length > k) best.pop();
  }
  return best.map(({ row: other, sum }) => ({ row: other, distance: Math.sqrt(sum) }));
}

// How a category looks: a place in palette x symbols; the commonest get one if there are too many.
function slots(column) {
  if (column.slots) return column.slots;
  const count = new Uint32Array(column.names.length);
  for (const code of column.codes) count[code]++;
  const order = column.names.map((_, i) => i);
  if (order.length > MOST_COLOURED) order.sort((a, b) => count[b] - count[a] || a - b);
  const slot = new Uint16Array(column.names.length).fill(MOST_COLOURED);
  order.slice(0, MOST_COLOURED).forEach((code, i) => { slot[code] = i; });
  // A cluster keeps its colour when their number changes.
  if (column.parts) column.parts.forEach((part, code) => {
    slot[code] = Math.min(clusters.cards[part].slot, MOST_COLOURED);
  });
  column.counts = count;
  column.slots = slot;
  return slot;
}

function colourOfSlot(slot) {
  return slot === MOST_COLOURED ? css("--faint") : palette()[slot % palette().length];
}
const symbolOfSlot = (slot) => slot === MOST_COLOURED ? 0 : Math.floor(slot / PALETTES.light.length);

function search(text, limit) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const exact = [], starts = [], inside = [], read = [];
  for (let row = 0; row < rows.n; row++) {
    const id = idOf(row).toLowerCase();
    if (id === wanted || String(row) === wanted) exact.push(row);
    else if (id.startsWith(wanted)) starts.push(row);
    else if (id.includes(wanted)) inside.push(row);
    else if (hasContent("text") && (textOf(row) || "").toLowerCase().includes(wanted)) read.push(row);
  }
  return [...exact, ...starts, ...inside, ...read].slice(0, limit);
}
