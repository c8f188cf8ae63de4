// What Python packed: base64 of gzip of (length, JSON head, typed arrays).

async function inflate(id) {
  const text = document.getElementById(id).textContent;
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const kinds = { Uint8Array, Uint16Array, Int32Array, Float32Array };
  const arrays = {};
  for (const [name, [kind, shape, place]] of Object.entries(head.arrays)) {
    const size = shape.reduce((a, b) => a * b, 1);
    arrays[name] = new kinds[kind](buffer, 4 + length + place, size);
    arrays[name].shape = shape;
  }
  return { facts: head.facts, arrays };
}

// Elements are made from text only: nothing of the data is ever read as markup.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && name !== "style") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const byId = (id) => document.getElementById(id);

// A difference: its sign, and three digits.
function signed(value) {
  const size = format(Number(Math.abs(value).toPrecision(3)));
  return value > 0 ? `+${size}` : value < 0 ? `−${size}` : size;
}

function format(value) {
  if (!Number.isFinite(value)) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(2);
  return value.toLocaleString("en", { maximumSignificantDigits: 4 });
}
