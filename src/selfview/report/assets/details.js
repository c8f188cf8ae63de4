// Beside the map: the legend, what is selected, and one row with its neighbours.

const LEGEND = 60; // entries shown at once
const GALLERY = 24;

function startDetails() {
  map.listeners.push((what) => {
    if ("column" in what) drawLegend();
    if ("selected" in what || "column" in what) drawSelection();
    if ("focus" in what) {
      drawDetails();
      if (map.focus !== null) showInPanel("details");
    }
    if ("selected" in what) {
      markLegend();
      if (map.selected && !("focus" in what) && what.chosen === undefined) showInPanel("selection");
    }
  });
  themeListeners.push(() => { drawLegend(); drawSelection(); drawDetails(); });
  byId("find").addEventListener("input", showFound);
  byId("find").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const [first] = search(byId("find").value, 1);
    if (first !== undefined) change({ focus: first });
  });
  drawLegend();
  drawSelection();
  drawDetails();
}

// Scroll the panel, not the page, to one of its parts.
function showInPanel(id) {
  const panel = byId(id).parentElement;
  panel.scrollTop = byId(id).offsetTop - panel.offsetTop;
}

function rowButton(row, ...extra) {
  const button = make("button", { type: "button", className: "row" },
    hasContent("image") ? picture(row, 28) : null,
    make("span", { className: "id", dir: "auto" }, short(idOf(row), 48)), ...extra);
  button.addEventListener("click", () => change({ focus: row }));
  return button;
}

function showFound() {
  const text = byId("find").value;
  const found = search(text, 8);
  byId("found").replaceChildren(...found.map((row) => rowButton(row)));
  if (text.trim() && !found.length)
    byId("found").append(make("p", { className: "hint" }, "No row has this id or text."));
}

// --- legend ---------------------------------------------------------------------------------

function drawLegend() {
  const { column } = map;
  const box = byId("legend");
  const title = make("h3", {}, column.title);
  if (column.kind === "rgb") {
    box.replaceChildren(title, make("p", { className: "hint" },
      "First three principal components as red, green and blue."));
    return;
  }
  if (column.kind === "numbers") {
    const [low, high] = rangeOf(column.values);
    const bar = make("div", { className: "gradient" });
    bar.style.background = `linear-gradient(to right, ${numberColours().join(",")})`;
    box.replaceChildren(title, bar, make("p", { className: "ends" },
      ...[low, high].map((end) => make("span", {}, formatOf(column)(end)))));
    const none = column.values.reduce((count, value) => count + Number.isNaN(value), 0);
    if (none) box.append(make("p", { className: "hint" },
      `Grey: no value (${none.toLocaleString("en")}).`));
    return;
  }
  const slot = slots(column);
  const list = make("div", { className: "entries" });
  if (column.names.some((name) => name.length > 13)) list.classList.add("long");
  const order = column.names.map((_, i) => i).filter((i) => column.counts[i]);
  if (column.names.length > MOST_COLOURED) order.sort((a, b) => slot[a] - slot[b] || a - b);
  const fill = (wanted) => {
    const fitting = order.filter((i) => column.names[i].toLowerCase().includes(wanted));
    list.replaceChildren(...fitting.slice(0, LEGEND).map((code) => legendEntry(column, code)));
    if (fitting.length > LEGEND) list.append(make("p", { className: "hint" },
      `and ${(fitting.length - LEGEND).toLocaleString("en")} more; type to find one`));
    markLegend();
  };
  const parts = [title];
  if (order.length > 20) {
    const filter = make("input", { type: "search", placeholder: `Find one of ${order.length}` });
    filter.setAttribute("aria-label", `Find one of ${order.length} names`);
    filter.addEventListener("input", () => fill(filter.value.trim().toLowerCase()));
    parts.push(filter);
  }
  box.replaceChildren(...parts, list);
  fill("");
}

function legendEntry(column, code) {
  const slot = slots(column)[code];
  const glyph = make("span", { className: "glyph" }, GLYPHS[symbolOfSlot(slot)]);
  glyph.setAttribute("aria-hidden", "true");
  glyph.style.color = colourOfSlot(slot);
  const button = make("button", { type: "button", className: "entry" }, glyph,
    make("span", { className: "name", dir: "auto" }, column.names[code]),
    make("span", { className: "count" }, column.counts[code].toLocaleString("en")));
  button.dataset.code = code;
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => {
    const off = button.getAttribute("aria-pressed") === "true";
    const chosen = [];
    if (!off) column.codes.forEach((value, row) => { if (value === code) chosen.push(row); });
    map.chosen = off ? null : code;
    change({ selected: off ? null : chosen, chosen: off ? null : code });
  });
  return button;
}

function markLegend() {
  for (const button of byId("legend").querySelectorAll(".entry")) {
    const on = map.selected !== null && map.chosen === Number(button.dataset.code);
    button.setAttribute("aria-pressed", on);
  }
}

// --- selection ------------------------------------------------------------------------------

function drawSelection() {
  const box = byId("selection");
  if (!map.selected) {
    map.chosen = null;
    box.replaceChildren();
    return;
  }
  const clear = make("button", { type: "button", className: "quiet" }, "Clear");
  clear.addEventListener("click", () => change({ selected: null }));
  const save = make("button", { type: "button", className: "quiet" }, "Save ids");
  save.addEventListener("click", saveIds);
  const step = Math.max(1, Math.floor(map.selected.length / GALLERY));
  const some = map.selected.filter((_, i) => i % step === 0).slice(0, GALLERY);
  box.replaceChildren(
    make("div", { className: "line" }, make("h3", { id: "selected-count" },
      `${map.selected.length.toLocaleString("en")} row${map.selected.length === 1 ? "" : "s"} selected`),
    save, clear),
    composition(), gallery(some));
}

// Which categories the selection holds, most frequent first.
function composition() {
  const column = map.column.kind === "categories" ? map.column : namedColumn("cluster");
  const count = new Map();
  for (const row of map.selected) {
    count.set(column.codes[row], (count.get(column.codes[row]) || 0) + 1);
  }
  const order = [...count].sort((a, b) => b[1] - a[1]);
  const list = make("ul", { className: "bars" });
  for (const [code, size] of order.slice(0, 6)) {
    const bar = make("span", { className: "bar" });
    bar.style.width = `${(100 * size) / order[0][1]}%`;
    bar.style.background = colourOfSlot(slots(column)[code]);
    list.append(make("li", {}, make("span", { className: "name", dir: "auto" },
      short(column.names[code], 40)), make("span", { className: "count" },
      `${size.toLocaleString("en")}`), bar));
  }
  if (order.length > 6) list.append(make("li", { className: "hint" }, `and ${order.length - 6} more`));
  return list;
}

function gallery(some) {
  const box = make("div", { className: hasContent("image") ? "gallery" : "list" });
  for (const row of hasContent("image") ? some : some.slice(0, 8)) {
    const picked = hasContent("image") ? picture(row, 40) : null;
    const text = lineOf(row);
    if (!picked) {
      box.append(rowButton(row, hasContent("spectrum") ? sparkline(row, 72, 22) : null,
        text ? make("span", { className: "snippet", dir: "auto" }, short(text, 70)) : null));
      continue;
    }
    const button = make("button", { type: "button", className: "tile", title: idOf(row) }, picked);
    button.setAttribute("aria-label", `Row ${idOf(row)}`);
    button.addEventListener("click", () => change({ focus: row }));
    box.append(button);
  }
  return box;
}

function saveIds() {
  saveTable("selection.csv", ["row", "id"], map.selected.map((row) => [row, idOf(row)]));
}

function saveTable(name, heads, table) {
  const quoted = (cell) => /[",\n\r]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
  const lines = [heads, ...table].map((cells) => cells.map((cell) => quoted(String(cell))).join(","));
  const link = make("a", { download: name,
    href: URL.createObjectURL(new Blob([lines.join("\n")], { type: "text/csv" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// --- one row --------------------------------------------------------------------------------

function drawDetails() {
  const box = byId("details");
  if (map.focus === null) {
    box.replaceChildren(make("p", { className: "hint empty" },
      "Click a point to see the row and its nearest neighbours."));
    return;
  }
  const row = map.focus;
  const close = make("button", { type: "button", className: "quiet" }, "Close");
  close.addEventListener("click", () => { change({ focus: null }); byId("frame").focus(); });
  const facts = make("dl", { className: "facts" });
  const shown = rows.columns.filter(({ kind, group }) => group === "Columns" && kind !== "rgb");
  const entry = (column) => make("div", {}, make("dt", {}, column.title),
    make("dd", { dir: "auto" }, valueOf(column, row)));
  facts.append(...shown.map(entry));
  if (tissue.facts && tissue.facts.origin) {
    const place = [0, 1].map((i) => tissue.arrays.places[2 * row + i] + tissue.facts.origin[i]);
    facts.prepend(make("div", {}, make("dt", {}, "Pixel"),
      make("dd", {}, `x ${place[0]}, y ${place[1]}`)));
  }
  box.replaceChildren(make("div", { className: "line" },
    make("h3", { id: "row-title", dir: "auto" }, idOf(row)), close),
  make("div", { className: "content" }, ...contentOf(row, true)), facts);
  const own = rows.columns.filter(({ group }) => group === "Data");
  const values = own.length ? [make("h4", {}, "Values"), make("dl", { className: "facts" },
    ...own.map(entry))] : [];
  // The values of a mixed table are all that its row shows; other rows have a picture or a line.
  const parts = [values, nearest(row)];
  box.append(...(content.facts.kinds.length ? parts.reverse() : parts).flat());
}

// A row on one line: its text, or the first columns of a mixed table; null of other rows.
function lineOf(row) {
  if (hasContent("text")) return textOf(row);
  const own = content.facts.kinds.length ? [] : rows.columns.filter(({ group }) => group === "Data");
  return own.slice(0, 6).map((column) => valueOf(column, row)).join(", ") || null;
}

function nearest(row) {
  const near = map.near || [];
  if (!near.length) return [];
  const judge = namedColumn("label") || namedColumn("cluster");
  const parts = [make("h4", {}, "Nearest neighbours")];
  if (judge && judge.kind === "categories") {
    const same = near.filter(({ row: other }) => judge.codes[other] === judge.codes[row]).length;
    parts.push(make("p", { className: "hint" },
      `${same} of ${near.length} have the same ${judge.name}.`));
  }
  const list = make("ol", { className: "near" });
  for (const { row: other, distance } of near) {
    const text = lineOf(other);
    const mark = judge && judge.kind === "categories" ? make("span", { className: "value", dir: "auto" },
      short(valueOf(judge, other), 24)) : null;
    const button = rowButton(other, mark, hasContent("spectrum") ? sparkline(other, 72, 22) : null,
      make("span", { className: "count" }, format(distance)),
      text ? make("span", { className: "snippet", dir: "auto" }, short(text, 90)) : null);
    list.append(make("li", {}, button));
  }
  return [...parts, list];
}
