"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const make = (tag, text, parent) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.append(node);
  return node;
};

// Numbers as people read them.
const digits = (value) => value.toLocaleString("en-US", {maximumFractionDigits: value >= 100 ? 1 : value >= 10 ? 2 : 3});
const scaled = (value, units, base) => {
  let index = 0;
  while (Math.abs(value) >= base && index < units.length - 1) { value /= base; index += 1; }
  return digits(value) + "\u202f" + units[index];
};
const time = (ns) => scaled(ns, ["ns", "µs", "ms", "s"], 1000);
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

// Head.
byId("program").textContent = data.program;
byId("about").textContent = data.about;
for (const note of data.notes) {
  make("li", note, byId("notes"));
  byId("notes").hidden = false;
}
for (const [label, value, unit] of data.cards) {
  const card = make("div", undefined, byId("cards"));
  make("b", show[unit](value), card);
  make("span", label, card);
}

// Tables.
const PAGE = 100;
const isText = (unit) => unit === "text" || unit === "short";
const addTable = (table) => {
  const section = make("section", undefined, byId("tables"));
  section.id = table.id;
  const link = make("a", table.title, byId("jump"));
  link.href = "#" + table.id;
  const bar = make("div", undefined, section);
  bar.className = "bar";
  make("h2", table.title, bar);
  const search = make("input", undefined, bar);
  search.type = "search";
  search.placeholder = "Search " + table.title.toLowerCase();
  search.setAttribute("aria-label", search.placeholder);
  const hint = make("p", undefined, section);
  hint.className = "hint";
  const scroll = make("div", undefined, section);
  scroll.className = "scroll";
  const element = make("table", undefined, scroll);
  const head = make("tr", undefined, make("thead", undefined, element));
  const body = make("tbody", undefined, element);
  const more = make("button", undefined, section);
  more.type = "button";
  more.className = "more";
  let sorted = table.sort, ascending = false, limit = PAGE;

  const heads = table.columns.map(([label, unit], column) => {
    const th = make("th", undefined, head);
    th.scope = "col";
    if (isText(unit)) th.className = "text";
    const button = make("button", label, th);
    button.type = "button";
    button.addEventListener("click", () => {
      ascending = sorted === column ? !ascending : isText(unit);
      sorted = column;
      draw();
    });
    return th;
  });

  const draw = () => {
    const wanted = search.value.trim().toLowerCase();
    const found = table.rows.filter((row) => !wanted || row.some((cell) => typeof cell === "string" && cell.toLowerCase().includes(wanted)));
    const sign = ascending ? 1 : -1;
    found.sort((a, b) => {
      const [x, y] = [a[sorted], b[sorted]];
      return sign * (typeof x === "string" ? x.localeCompare(y) : (x ?? -1) - (y ?? -1));
    });
    heads.forEach((th, column) => {
      if (column === sorted) th.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      else th.removeAttribute("aria-sort");
    });
    body.replaceChildren(...found.slice(0, limit).map((row) => {
      const tr = document.createElement("tr");
      row.forEach((cell, column) => {
        const unit = table.columns[column][1];
        const td = make("td", cell === null ? "" : show[unit](cell), tr);
        if (isText(unit)) td.className = unit === "short" ? "text short" : "text";
        if (unit === "share") {
          td.className = "share";
          td.style.setProperty("--share", Math.min(cell, 100) + "%");
        }
      });
      return tr;
    }));
    const left = found.length - Math.min(limit, found.length);
    more.hidden = left === 0;
    more.textContent = "Show " + show.count(left) + " more";
    const rows = wanted ? show.count(found.length) + " of " + show.count(table.rows.length) + " rows" : show.count(found.length) + (found.length === 1 ? " row" : " rows");
    hint.textContent = table.note ? rows + ". " + table.note : rows;
  };
  search.addEventListener("input", () => { limit = PAGE; draw(); });
  more.addEventListener("click", () => { limit = Infinity; draw(); });
  draw();
};
data.tables.forEach(addTable);

const REASONS = ["issued"];
const reasonColour = (reason) => {
  if (!REASONS.includes(reason)) REASONS.push(reason);
  const place = REASONS.indexOf(reason);
  return reason === "issued" ? "#2e9e5b" : "hsl(" + (20 + place * 47) % 360 + " 65% 55%)";
};
const percent = (part, whole) => (100 * part / Math.max(whole, 1)).toFixed(1);
const addListing = (listing) => {
  const section = make("section", undefined, byId("code"));
  make("h2", "Code of " + listing.kernel, section);
  const where = listing.function === listing.kernel ? "" : " in " + listing.function;
  make("p", digits(listing.samples) + " of " + digits(listing.all) + " " + listing.measure + where + ". Shares are of these; the bar shows what the issue logic did.", section).className = "hint";
  const scroll = make("div", undefined, section);
  scroll.className = "scroll listing";
  const table = make("table", undefined, scroll);
  const head = make("tr", undefined, make("thead", undefined, table));
  for (const [name, kind] of [["Line", ""], ["Source", "text"], [listing.measure[0].toUpperCase() + listing.measure.slice(1), ""], ["Share %", ""], ["Offset", ""], ["Instruction", "text"], ["Issue", "text"], ["Lanes", ""]]) {
    make("th", name, head).className = kind;
  }
  const body = make("tbody", undefined, table);
  const most = Math.max(1, ...listing.rows.map((row) => row.tally?.samples ?? 0));
  for (const row of listing.rows) {
    const line = make("tr", undefined, body);
    const number = make("td", row.line || "", line);
    number.title = row.places ?? "";
    const source = make("td", row.source ?? "", line);
    source.className = "text code";
    source.title = row.places ?? "";
    const tally = row.tally;
    make("td", tally ? digits(tally.samples) : "", line);
    const share = make("td", tally ? percent(tally.samples, listing.samples) + (tally.error === undefined ? "" : " ± " + tally.error.toFixed(1)) : "", line);
    if (tally) {
      share.className = "heat";
      share.style.setProperty("--heat", Math.round(100 * tally.samples / most) + "%");
    }
    make("td", "0x" + row.offset.toString(16), line);
    make("td", row.text, line).className = "text code";
    const issue = make("td", undefined, line);
    issue.className = "text";
    if (tally?.stalls) {
      const bar = make("div", undefined, issue);
      bar.className = "stack";
      const parts = [["issued", tally.issued], ...tally.stalls].filter((part) => part[1] > 0);
      for (const [reason, samples] of parts) {
        const part = make("span", undefined, bar);
        part.style.width = percent(samples, tally.samples) + "%";
        part.style.background = reasonColour(reason);
      }
      bar.title = parts.map(([reason, samples]) => reason + " " + percent(samples, tally.samples) + " %").join("\n");
    }
    make("td", tally?.lanes === undefined ? "" : tally.lanes.toFixed(1), line);
  }
  const legend = make("p", undefined, section);
  legend.className = "hint legend";
  for (const reason of REASONS.slice(listing.rows.some((row) => row.tally?.stalls) ? 0 : REASONS.length)) {
    const mark = make("span", undefined, legend);
    mark.className = "mark";
    mark.style.background = reasonColour(reason);
    make("span", reason + " ", legend);
  }
};
data.code.forEach(addListing);

// Waves of thread traces: a row for each slot of a SIMD, a bar for each wave; the left part of a bar is the share of its time that was stalled.
const addTrace = (trace) => {
  if (trace.waves.length === 0) return;
  const section = make("section", undefined, byId("traces"));
  make("h2", "Waves of trace " + trace.trace + ": " + trace.kernel, section);
  const left = trace.total - trace.waves.length;
  const begin = Math.min(...trace.waves.map((wave) => wave[4]));
  const end = Math.max(...trace.waves.map((wave) => wave[5]), begin + 1);
  make("p", digits(trace.total) + " waves of the traced compute unit in " + digits(end - begin) + " cycles; the orange part of a bar is the share that was stalled." + (left > 0 ? " The first " + digits(trace.waves.length) + " are shown." : ""), section).className = "hint";
  const zoom = make("input", undefined, section);
  zoom.type = "range";
  zoom.min = 1;
  zoom.max = 64;
  zoom.value = 1;
  zoom.setAttribute("aria-label", "Zoom");
  const scroll = make("div", undefined, section);
  scroll.className = "scroll listing";
  const area = make("div", undefined, scroll);
  area.className = "waves";
  zoom.addEventListener("input", () => { area.style.width = 100 * zoom.value + "%"; });
  const rows = new Map();
  for (const [engine, cu, simd, slot, from, to, latency, stall] of trace.waves) {
    const name = "SE " + engine + " CU " + cu + " SIMD " + simd + " slot " + slot;
    if (!rows.has(name)) {
      const row = make("div", undefined, area);
      row.className = "slot";
      row.title = name;
      rows.set(name, row);
    }
    const bar = make("span", undefined, rows.get(name));
    bar.style.left = percent(from - begin, end - begin) + "%";
    bar.style.width = percent(to - from, end - begin) + "%";
    bar.style.setProperty("--stall", percent(stall, to - from) + "%");
    bar.title = name + "\n" + digits(to - from) + " cycles, " + digits(latency) + " in instructions, " + digits(stall) + " stalled";
  }
};
data.traces.forEach(addTrace);

// Timeline. Tracks hold exact slices (start, duration, name, depth) when there are few, else bins over the whole time.
const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
const LABEL = 15, ROW = 13, BIN_HEIGHT = 20, GAP = 7, AXIS = 20;
let height = AXIS;
for (const track of data.tracks) {
  if (track.slices) {
    let depth = 0;
    for (let at = 3; at < track.slices.length; at += 4) depth = Math.max(depth, track.slices[at]);
    track.rows = Math.min(depth + 1, 5);
    track.height = LABEL + track.rows * ROW + GAP;
  } else {
    track.busy = bytes(track.bins);
    const raw = bytes(track.top);
    track.names = Uint16Array.from({length: raw.length / 2}, (_, index) => raw[2 * index] | raw[2 * index + 1] << 8);
    track.height = LABEL + BIN_HEIGHT + GAP;
  }
  track.y = height;
  height += track.height;
}
const canvas = byId("canvas"), tip = byId("tip"), stage = byId("stage");
const context = canvas.getContext("2d");
let from = 0, to = Math.max(data.length, 1);
byId("detail").textContent = data.detail;

const colours = new Map();
const colour = (name) => {
  let found = colours.get(name);
  if (!found) {
    let hash = 2166136261;
    for (const character of data.names[name] ?? "") hash = Math.imul(hash ^ character.charCodeAt(0), 16777619);
    const angle = (hash >>> 0) % 360;
    found = "hsl(" + angle + " 62% " + (45 + (hash >>> 12) % 12) + "%)";
    colours.set(name, found);
  }
  return found;
};
const fit = (text, width) => {
  if (context.measureText(text).width <= width) return text;
  let keep = Math.floor(text.length * width / context.measureText(text).width) - 1;
  return keep > 2 ? text.slice(0, keep) + "\u2026" : "";
};

const paint = () => {
  const width = stage.clientWidth, ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = height + "px";
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const style = getComputedStyle(document.documentElement);
  const [text, faint, lane, line] = ["--text", "--faint", "--lane", "--line"].map((name) => style.getPropertyValue(name).trim());
  const perPixel = (to - from) / width;
  const x = (at) => (at - from) / perPixel;
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "top";

  // Axis: steps of 1, 2 or 5 times a power of ten.
  const least = Math.max(perPixel * 90, 1), power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least);
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    context.fillStyle = line;
    context.fillRect(x(at), 0, 1, height);
    context.fillStyle = faint;
    context.fillText(at === 0 ? "0" : time(at), x(at) + 3, 3);
  }

  for (const track of data.tracks) {
    context.fillStyle = text;
    context.fillText(fit(track.label, width - 4), 0, track.y + 1);
    const top = track.y + LABEL, tall = track.slices ? track.rows * ROW : BIN_HEIGHT;
    context.fillStyle = lane;
    context.fillRect(0, top, width, tall);
    if (track.slices) {
      const {slices} = track;
      for (let at = 0; at < slices.length; at += 4) {
        const start = slices[at], end = start + slices[at + 1];
        if (end < from || start > to) continue;
        const left = Math.max(x(start), 0), wide = Math.max(Math.min(x(end), width) - left, 1);
        const y = top + Math.min(slices[at + 3], track.rows - 1) * ROW;
        context.fillStyle = colour(slices[at + 2]);
        context.fillRect(left, y, wide, ROW - 1);
        if (wide > 36) {
          context.fillStyle = "#fff";
          context.fillText(fit(data.names[slices[at + 2]], wide - 4), left + 2, y + 1);
        }
      }
    } else {
      const per = data.length / track.busy.length;
      const pixels = Math.ceil(width);
      for (let pixel = 0; pixel < pixels; pixel += 1) {
        const first = Math.floor((from + pixel * perPixel) / per);
        const last = Math.max(first, Math.ceil((from + (pixel + 1) * perPixel) / per) - 1);
        let sum = 0, best = -1, count = 0;
        for (let bin = Math.max(first, 0); bin <= last && bin < track.busy.length; bin += 1) {
          sum += track.busy[bin];
          count += 1;
          if (best < 0 || track.busy[bin] > track.busy[best]) best = bin;
        }
        if (sum === 0) continue;
        const share = Math.max(sum / count / 255, 0.08);
        context.fillStyle = colour(track.names[best]);
        context.fillRect(pixel, top + BIN_HEIGHT * (1 - share), 1, BIN_HEIGHT * share);
      }
    }
  }
  byId("range").textContent = time(from) + " to " + time(to) + " of " + time(data.length) + ". Drag to move, turn the wheel with Ctrl to zoom, point to read" + (data.frames.length ? ", click a call to see its stack." : ".");
};

const zoom = (factor, around) => {
  const middle = around ?? (from + to) / 2;
  const span = Math.min(Math.max((to - from) * factor, 50), data.length);
  const share = (middle - from) / (to - from);
  move(middle - span * share, span);
};
const move = (start, span) => {
  from = Math.min(Math.max(start, 0), Math.max(data.length - span, 0));
  to = from + Math.max(span, 1);
  tip.hidden = true;
  paint();
};
const place = (event) => {
  const box = canvas.getBoundingClientRect();
  return {x: event.clientX - box.left, y: event.clientY - box.top, width: box.width};
};
// The slice at a place: its text, and its stack if it has one.
const sliceAt = ({x, y, width}) => {
  const track = data.tracks.find((track) => y >= track.y && y < track.y + track.height);
  if (!track) return null;
  const at = from + x / width * (to - from), slack = (to - from) / width * 2;
  if (!track.slices) {
    const bin = Math.min(Math.floor(at / data.length * track.busy.length), track.busy.length - 1);
    if (!track.busy[bin]) return null;
    return {text: (data.names[track.names[bin]] ?? "several") + ": busy " + Math.round(track.busy[bin] / 2.55) + " % of " + time(data.length / track.busy.length) + " at " + time(at)};
  }
  const row = Math.floor((y - track.y - LABEL) / ROW);
  let found = null, best = Infinity;
  for (let index = 0; index < track.slices.length; index += 4) {
    const [start, length, name, depth] = track.slices.slice(index, index + 4);
    if (start - slack > at) break;
    if (start + length + slack < at || (row >= 0 && Math.min(depth, track.rows - 1) !== row)) continue;
    const away = Math.max(start - at, at - start - length, 0);
    if (away <= best) {
      best = away;
      found = {text: data.names[name] + ": " + time(length) + " at " + time(start), stack: data.stacks[track.stacks?.[index / 4]]};
    }
  }
  return found;
};
const showStack = (slice) => {
  byId("stack").hidden = !slice?.stack;
  if (!slice?.stack) return;
  byId("stack-of").textContent = slice.text;
  byId("frames").replaceChildren(...slice.stack.map((frame) => make("li", data.frames[frame])));
};
let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  drag = {x: event.clientX, from};
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointerup", (event) => {
  if (drag && Math.abs(event.clientX - drag.x) <= 3) showStack(sliceAt(place(event)));
  drag = null;
});
canvas.addEventListener("pointercancel", () => { drag = null; });
canvas.addEventListener("pointermove", (event) => {
  const spot = place(event);
  if (drag && Math.abs(event.clientX - drag.x) > 3) {
    move(drag.from - (event.clientX - drag.x) / spot.width * (to - from), to - from);
    return;
  }
  const slice = sliceAt(spot);
  tip.hidden = !slice;
  tip.textContent = slice?.text ?? "";
  tip.style.top = spot.y + 16 + "px";
  tip.style.left = Math.max(Math.min(spot.x + 8, spot.width - tip.offsetWidth), 0) + "px";
});
canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.shiftKey) return;
  event.preventDefault();
  const spot = place(event);
  const turned = event.deltaY || event.deltaX;
  zoom(turned > 0 ? 1.25 : 0.8, from + spot.x / spot.width * (to - from));
}, {passive: false});
const buttons = {
  in: () => zoom(0.5), out: () => zoom(2), all: () => move(0, data.length),
  left: () => move(from - (to - from) / 3, to - from), right: () => move(from + (to - from) / 3, to - from),
};
for (const [id, action] of Object.entries(buttons)) byId(id).addEventListener("click", action);
const keys = {"+": "in", "-": "out", "0": "all", ArrowLeft: "left", ArrowRight: "right"};
canvas.addEventListener("keydown", (event) => {
  if (keys[event.key]) { event.preventDefault(); buttons[keys[event.key]](); }
});
new ResizeObserver(paint).observe(stage);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
window.addEventListener("beforeprint", paint);
byId("timeline").hidden = data.tracks.length === 0;
paint();
})();
