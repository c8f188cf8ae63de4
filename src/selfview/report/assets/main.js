// Begin: unpack the library and the data, then start each part of the page.

function trouble(text) {
  byId("trouble").textContent = text;
  byId("trouble").hidden = false;
}

async function begin() {
  startTheme();
  startScrolls();
  byId("copy").addEventListener("click", copyCommand);
  if (typeof DecompressionStream === "undefined") {
    trouble("The map and the curves need a browser of 2023 or later; the tables do not.");
    return;
  }
  const [library, data] = await Promise.all([inflate("library"), inflate("payload")]);
  document.head.append(make("script", { textContent: new TextDecoder().decode(library) }));
  byId("library").remove();
  byId("payload").remove();
  const { facts, arrays } = unpack(data);
  startContent(facts, arrays);
  startRows(facts, arrays);
  startClusters(facts, arrays);
  await startMap(facts, arrays);
  startDetails();
  listenToClusters();
  startTissue(facts, arrays);
  startCurves(facts);
  document.documentElement.dataset.ready = "true";
  window.selfview = { map, rows, content, clusters, tissue, change, neighbours, samples, columnOf };
}

async function copyCommand() {
  const text = byId("command").textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch { // not allowed from a file in some browsers: select it for the reader instead
    getSelection().selectAllChildren(byId("command"));
    document.execCommand("copy");
  }
  byId("copy").textContent = "Copied";
  setTimeout(() => { byId("copy").textContent = "Copy"; }, 1500);
}

begin().catch((error) => {
  trouble(`The map could not be drawn: ${error.message}`);
  throw error;
});
