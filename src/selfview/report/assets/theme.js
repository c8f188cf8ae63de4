// Light, dark or as the system has it, and the colours of each. Palettes are Okabe and Ito's,
// extended by Paul Tol's, in an order that keeps neighbours apart also for colour-blind readers.

const PALETTES = {
  light: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00",
    "#3c4048", "#c9b800", "#882255", "#4b3fa7", "#8a6d3b", "#117733"],
  dark: ["#3f9ee8", "#e69f00", "#00b386", "#e08fbd", "#8fd0f5", "#f06a1d",
    "#e6e8ec", "#f0e442", "#c2517f", "#9d8df1", "#c8a467", "#5fae6b"],
};
const SYMBOLS = ["circle", "diamond", "square", "triangle-up"];
const GLYPHS = ["●", "◆", "■", "▲"];
const MOST_COLOURED = PALETTES.light.length * SYMBOLS.length;

// Matplotlib's viridis and cividis: even steps of lightness, safe for all kinds of sight.
const VIRIDIS = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779",
  "#6ece58", "#b5de2b", "#fde725"];

function themeNow() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen) return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const palette = () => PALETTES[themeNow()];
// The colours of numbers on the map; the darkest would not be seen on a dark page.
const numberColours = () => (themeNow() === "dark" ? VIRIDIS.slice(2) : VIRIDIS);
const themeListeners = [];

function remember(theme) {
  try {
    if (theme) localStorage.setItem("selfview-theme", theme);
    else localStorage.removeItem("selfview-theme");
  } catch { /* a page from a file may have no storage: the choice then lasts as long as the page */ }
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  const words = { dark: "Dark", light: "Light" };
  byId("theme-name").textContent = words[theme] || "Auto";
  byId("theme").setAttribute("aria-label",
    `Colours of the page: ${theme || "as the system"}. Press to change.`);
  for (const listener of themeListeners) listener();
}

function startTheme() {
  let stored = null;
  try { stored = localStorage.getItem("selfview-theme"); } catch { /* as above */ }
  if (stored === "dark" || stored === "light") setTheme(stored);
  byId("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme;
    const other = themeNow() === "dark" ? "light" : "dark";
    const next = now === undefined ? other : now === "dark" ? "light" : "dark";
    setTheme(next);
    remember(next);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const listener of themeListeners) listener();
  });
}

function rgbOf(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

// The colour of a share from 0 to 1 on the continuous scale.
function shade(share) {
  const place = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1);
  const low = Math.min(Math.floor(place), VIRIDIS.length - 2);
  const a = rgbOf(VIRIDIS[low]), b = rgbOf(VIRIDIS[low + 1]);
  return a.map((value, i) => Math.round(value + (b[i] - value) * (place - low)));
}

// What all charts share: no background of their own, the page's ink.
function chartLayout(extra = {}) {
  const ink = css("--soft"), line = css("--line");
  const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, tickcolor: line,
    automargin: true, fixedrange: true };
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: css("--sans"), size: 12, color: ink },
    margin: { l: 44, r: 10, t: 8, b: 32 }, showlegend: false, hovermode: "closest",
    hoverlabel: { bgcolor: css("--raised"), bordercolor: line, font: { color: css("--ink") } },
    ...extra,
    xaxis: { ...axis, ...(extra.xaxis || {}) }, yaxis: { ...axis, ...(extra.yaxis || {}) },
  };
}
