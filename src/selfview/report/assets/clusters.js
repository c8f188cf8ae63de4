// Clusters: any number of them, nested; what each is made of, and what it is called.

const clusters = { number: 0, names: {} };

function startClusters(facts, arrays) {
  Object.assign(clusters, facts.clusters, { leaf: arrays.clusterLeaf, codes: arrays.clusterCodes,
    pictures: arrays.clusterPictures, column: namedColumn("cluster") });
  setNumber(clusters.shown);
}

// The column of clusters for so many of them: its codes, its names, and the cards of these.
function setNumber(number) {
  const { levels, cards, leaf, codes, column } = clusters;
  const smallest = codes.shape[1], row = codes.subarray((number - 1) * smallest, number * smallest);
  clusters.number = number;
  column.parts = levels[number - 1];
  column.codes = column.values = Uint16Array.from(leaf, (part) => row[part]);
  column.names = column.parts.map((part) => cards[part].name);
  column.slots = null;
}

function listenToClusters() {
  const field = byId("cluster-number");
  field.addEventListener("change", () => {
    const number = Math.round(Number(field.value)) || clusters.shown;
    field.value = Math.min(clusters.levels.length, Math.max(1, number));
    showNumber(Number(field.value));
  });
  byId("cluster-save").addEventListener("click", saveClusters);
  themeListeners.push(drawClusters);
  drawClusters();
}

function showNumber(number) {
  setNumber(number);
  byId("colour").value = clusters.column.key;
  change({ column: clusters.column, selected: null });
  drawClusters();
}

function drawClusters() {
  const { column, number } = clusters;
  byId("cluster-count").textContent = number === 1 ? "1 cluster" : `${number} clusters`;
  slots(column);
  const order = column.parts.map((_, code) => code).sort((a, b) => column.counts[b] - column.counts[a]);
  byId("cluster-cards").replaceChildren(...order.map(clusterCard));
}

function clusterCard(code) {
  const { column, cards } = clusters;
  const part = column.parts[code], card = cards[part];
  const name = make("input", { type: "text", className: "cluster-name", value: card.name,
    autocomplete: "off", spellcheck: false });
  name.setAttribute("aria-label", `Name of ${card.name}`);
  name.addEventListener("change", () => {
    card.name = name.value.trim() || card.name;
    showNumber(clusters.number);
  });
  const mark = make("span", { className: "glyph" }, GLYPHS[symbolOfSlot(slots(column)[code])]);
  mark.setAttribute("aria-hidden", "true");
  mark.style.color = colourOfSlot(slots(column)[code]);
  const share = `${((100 * card.size) / rows.n).toFixed(card.size < rows.n / 100 ? 1 : 0)} %`;
  const show = make("button", { type: "button", className: "quiet" }, "Show");
  show.setAttribute("aria-label", `Show ${card.name} on the map`);
  show.addEventListener("click", () => showCluster(code));
  const box = make("article", { className: "cluster" },
    make("div", { className: "line" }, mark, name, show),
    make("p", { className: "hint" }, `${card.size.toLocaleString("en")} rows, ${share}`));
  const typical = gallery(card.typical);
  typical.classList.add("typical");
  typical.addEventListener("click", (event) => { if (event.target.closest("button")) toDetails(); });
  const picture = contributionPicture(part);
  box.append(make("h4", {}, "Most typical rows"), typical);
  if (picture) box.append(make("h4", {}, "Contribution of each pixel"), picture);
  else if (card.leading.length) box.append(make("h4", {}, "Leading features"), featureBars(card.leading));
  return box;
}

// To where a row that was clicked is shown: beside the map, or below it where there is no room.
function toDetails() {
  byId(matchMedia("(max-width: 60rem)").matches ? "details" : "map").scrollIntoView();
}

function showCluster(code) {
  const { column } = clusters;
  const chosen = [];
  column.codes.forEach((value, row) => { if (value === code) chosen.push(row); });
  byId("colour").value = column.key;
  map.chosen = code;
  change({ column, selected: chosen, chosen: code });
  byId("map").scrollIntoView();
}

function featureBars(leading) {
  const largest = Math.max(...leading.map(([, contribution]) => Math.abs(contribution))) || 1;
  const list = make("ul", { className: "bars" });
  for (const [name, contribution, difference] of leading) {
    const bar = make("span", { className: "bar" });
    bar.style.width = `${(100 * Math.abs(contribution)) / largest}%`;
    bar.style.background = contribution < 0 ? palette()[5] : css("--accent");
    list.append(make("li", { title: `contribution ${format(contribution)}` },
      make("span", { className: "name", dir: "auto" }, short(name, 40)),
      make("span", { className: "count" }, signed(difference)), bar));
  }
  return list;
}

// Blue pixels lead to the cluster, orange ones away from it.
function contributionPicture(part) {
  if (!clusters.pictures) return null;
  const [, height, width] = clusters.pictures.shape;
  const values = clusters.pictures.subarray(part * height * width, (part + 1) * height * width);
  const canvas = make("canvas", { className: "thumb heat", width, height, role: "img" });
  canvas.setAttribute("aria-label", `Contribution of each pixel to ${clusters.cards[part].name}`);
  const scale = 112 / Math.max(width, height);
  canvas.style.width = `${Math.round(width * scale)}px`;
  canvas.style.height = `${Math.round(height * scale)}px`;
  const pen = canvas.getContext("2d"), image = pen.createImageData(width, height);
  const towards = rgbOf(palette()[0]), away = rgbOf(palette()[5]);
  values.forEach((value, i) => {
    const share = Math.min(1, Math.abs(value - 128) / 127);
    image.data.set([...(value < 128 ? away : towards), Math.round(255 * share)], 4 * i);
  });
  pen.putImageData(image, 0, 0);
  return canvas;
}

function saveClusters() {
  const { column } = clusters;
  saveTable("clusters.csv", ["row", "id", "cluster"], Array.from(column.codes,
    (code, row) => [row, idOf(row), column.names[code]]));
}
