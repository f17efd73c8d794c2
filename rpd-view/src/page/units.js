// What all pages of rpd share: elements, numbers as people read them, and colours.
const byId = (id) => document.getElementById(id);
const make = (tag, text, parent) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.append(node);
  return node;
};
const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
const styleOf = (...names) => {
  const style = getComputedStyle(document.documentElement);
  return names.map((name) => style.getPropertyValue(name).trim());
};

// Numbers as people read them.
const digits = (value) => value.toLocaleString("en-US", {maximumFractionDigits: value >= 100 ? 1 : value >= 10 ? 2 : 3});
const scaled = (value, units, base) => {
  let index = 0;
  while (Math.abs(value) >= base && index < units.length - 1) { value /= base; index += 1; }
  return digits(value) + "\u202f" + units[index];
};
const TIMES = ["ns", "µs", "ms", "s"];
const time = (ns) => scaled(ns, TIMES, 1000);
// A place on an axis whose labels are `step` apart, with as many digits as tell neighbours apart.
const onAxis = (value, step, units) => {
  if (value === 0) return "0";
  let index = 0, size = 1;
  while (Math.abs(value) >= size * 1000 && index < units.length - 1) { size *= 1000; index += 1; }
  const needed = Math.min(Math.max(Math.ceil(Math.log10(size / step) - 1e-9), 0), 15);
  return (value / size).toLocaleString("en-US", {minimumFractionDigits: needed, maximumFractionDigits: needed}) + "\u202f" + units[index];
};
const show = {
  count: (value) => value.toLocaleString("en-US"),
  ns: time,
  bytes: (value) => scaled(value, ["B", "KiB", "MiB", "GiB", "TiB"], 1024),
  rate: (value) => scaled(value, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"], 1000),
  value: (value) => value.toLocaleString("en-US", {maximumFractionDigits: Math.abs(value) < 1 ? 6 : 3}),
  share: (value) => value.toFixed(2) + "\u202f%",
  text: (value) => value,
  short: (value) => value,
};

// Colours that people with any vision tell apart, and on each the one of black and white that contrasts more, by the relative
// luminance as WCAG defines it: at least 4.5.
const PALETTE = ["#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#88ccee", "#44aa99", "#999933", "#ddcc77", "#cc6677", "#aa4499", "#7f9fd6"];
const luminance = (colour) => {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const contrast = (a, b) => {
  const [x, y] = [luminance(a), luminance(b)].sort((one, other) => other - one);
  return (x + 0.05) / (y + 0.05);
};
const textOn = (colour) => contrast(colour, "#ffffff") > contrast(colour, "#000000") ? "#ffffff" : "#000000";
const INKS = PALETTE.map((box) => ({box, text: textOn(box)}));
// The colours of a text: that of its box, and that of the text in it.
const inks = new Map();
const inkOf = (text) => {
  let found = inks.get(text);
  if (!found) {
    let hash = 2166136261;
    for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 16777619);
    found = INKS[((hash ^ hash >>> 15) >>> 0) % INKS.length];
    if (inks.size > 50000) inks.clear();
    inks.set(text, found);
  }
  return found;
};
// As much of a text as is `width` wide.
const fit = (context, text, width) => {
  // Longer ones need not be measured.
  const most = text.slice(0, Math.ceil(width / 2));
  const whole = context.measureText(most).width;
  if (most === text && whole <= width) return text;
  const keep = Math.floor(most.length * width / whole) - 2;
  return keep > 2 ? most.slice(0, keep) + "\u2026" : "";
};
