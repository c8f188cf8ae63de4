// The training curves: one small chart each, all over the same epochs.

function startCurves(facts) {
  const draw = () => facts.curves.forEach(([key], i) => {
    const box = byId(`curve-${i}`);
    const y = facts.history[key];
    const x = facts.history.epoch || y.map((_, epoch) => epoch + 1);
    Plotly.react(box, [{ type: "scatter", mode: y.length > 1 ? "lines" : "markers", x, y,
      line: { color: css("--accent"), width: 2 }, marker: { color: css("--accent"), size: 8 },
      hovertemplate: "epoch %{x}: %{y:.4~g}<extra></extra>" }],
    chartLayout({ height: 170, hovermode: "x", yaxis: { nticks: 5 },
      xaxis: { title: { text: "epoch", standoff: 4 }, nticks: 6 } }),
    { displayModeBar: false, responsive: true });
  });
  // Charts in a closed fold have no width: they are drawn when it opens.
  const fold = byId("curves");
  if (!fold) return;
  const drawOpen = () => { if (fold.open) draw(); };
  fold.addEventListener("toggle", drawOpen);
  themeListeners.push(drawOpen);
}
