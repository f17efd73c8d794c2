// Thread traces: waves on the shader engines over time, the waves of the traced compute units, and how busy each compute unit was.
const CHART = 64, SLOT = 12, WAVE = "#2e9e5b", STALL = "#d9863d";
const CYCLES = ["cycles", "k cycles", "M cycles", "G cycles"];
const cycles = (value) => scaled(value, CYCLES, 1000);
const ACTIONS = [["in", "+", "Zoom in"], ["out", "\u2212", "Zoom out"], ["left", "\u2190", "Earlier"], ["right", "\u2192", "Later"], ["all", "All", "All"]];

// Mean number of waves in each of `count` equal parts of the time from `from` to `to`.
const wavesOver = (engines, from, to, count) => {
  const sums = new Float64Array(count), per = (to - from) / count;
  for (const {occupancy} of engines) {
    for (let at = 0; at < occupancy.length; at += 3) {
      const begin = Math.max(occupancy[at], from), end = Math.min(occupancy[at + 1], to);
      if (begin >= end) continue;
      const rate = occupancy[at + 2] / (occupancy[at + 1] - occupancy[at]);
      const last = Math.min(Math.ceil((end - from) / per), count) - 1;
      for (let part = Math.floor((begin - from) / per); part <= last; part += 1) {
        const inside = Math.min(end, from + (part + 1) * per) - Math.max(begin, from + part * per);
        if (inside > 0) sums[part] += rate * inside;
      }
    }
  }
  return sums.map((sum) => sum / per);
};

// The compute units of engines, each with its number, a count, and how dark it is. `tell` describes one.
const addHeat = (title, engines, section, tell) => {
  const units = [...new Set(engines.flatMap((engine) => engine.units.map((unit) => unit[0])))].sort((a, b) => a - b);
  if (units.length === 0) return;
  make("h3", title, section);
  const scroll = make("div", undefined, section);
  scroll.className = "scroll";
  const table = make("table", undefined, scroll);
  table.className = "units";
  const head = make("tr", undefined, make("thead", undefined, table));
  make("th", "", head);
  for (const unit of units) make("th", unit < 128 ? "CU " + unit : "SA 1 CU " + (unit - 128), head);
  const body = make("tbody", undefined, table);
  const most = Math.max(1, ...engines.flatMap((engine) => engine.units.map((unit) => unit[2])));
  for (const engine of engines) {
    const row = make("tr", undefined, body);
    make("th", engine.name, row);
    for (const unit of units) {
      const found = engine.units.find((known) => known[0] === unit);
      const cell = make("td", found ? digits(found[1]) : "", row);
      if (!found) continue;
      cell.style.setProperty("--heat", Math.round(100 * found[2] / most) + "%");
      cell.title = engine.name + " CU " + unit % 128 + "\n" + tell(found);
    }
  }
};

const addTrace = (trace) => {
  const section = make("section", undefined, byId("traces"));
  const bar = make("div", undefined, section);
  bar.className = "bar";
  make("h2", "Trace " + trace.trace + ": " + trace.kernel, bar);
  const tools = make("span", undefined, bar);
  tools.className = "tools";
  make("p", digits(trace.total) + " waves of the traced compute units in " + cycles(trace.length) + ", a row for each slot of a SIMD; orange is the share that was stalled. Above them: waves on all compute units of the traced shader engines." + (trace.left > 0 ? " " + trace.left + " slots are left out." : ""), section).className = "hint";
  addHeat("Compute units: waves", trace.engines, section, (unit) => digits(unit[1]) + " waves, " + cycles(unit[2]) + ", " + (unit[2] / trace.length).toFixed(1) + " at a time");
  const range = make("p", undefined, section);
  range.className = "hint";
  const stage = make("div", undefined, section);
  stage.className = "stage";
  const canvas = make("canvas", undefined, stage), tip = make("div", undefined, stage);
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Waves over time, a row for each slot of a SIMD");
  tip.className = "tip";
  tip.hidden = true;
  for (const slot of trace.slots) {
    if (!slot.busy) continue;
    slot.busy = bytes(slot.busy);
    slot.stall = bytes(slot.stall);
  }
  const chart = trace.engines.some((engine) => engine.occupancy.length > 0) ? CHART : 0;
  const top = AXIS + chart + GAP, height = top + trace.slots.length * SLOT;

  const drawChart = ({context, width}) => {
    if (!chart) return;
    const [text, lane] = styleOf("--text", "--lane");
    context.fillStyle = lane;
    context.fillRect(0, AXIS, width, chart);
    const waves = wavesOver(trace.engines, view.from, view.to, Math.ceil(width));
    const most = Math.max(1, ...waves);
    context.fillStyle = WAVE;
    waves.forEach((count, pixel) => context.fillRect(pixel, AXIS + chart * (1 - count / most), 1, chart * count / most));
    context.fillStyle = text;
    context.fillText(digits(most) + " waves", 3, AXIS + 2);
  };
  const drawBins = ({context, width, perPixel}, slot, y) => {
    const per = trace.length / slot.busy.length;
    for (let pixel = 0; pixel < width; pixel += 1) {
      const first = Math.floor((view.from + pixel * perPixel) / per);
      const last = Math.min(Math.max(first, Math.ceil((view.from + (pixel + 1) * perPixel) / per) - 1), slot.busy.length - 1);
      let busy = 0, stall = 0;
      for (let bin = first; bin <= last; bin += 1) {
        busy += slot.busy[bin];
        stall += slot.stall[bin];
      }
      if (busy === 0) continue;
      const tall = (SLOT - 1) * Math.max(busy / (last - first + 1) / 255, 0.1), orange = tall * Math.min(stall / busy, 1);
      context.fillStyle = WAVE;
      context.fillRect(pixel, y + SLOT - 1 - tall, 1, tall);
      context.fillStyle = STALL;
      context.fillRect(pixel, y + SLOT - 1 - orange, 1, orange);
    }
  };
  const drawWaves = ({context, width, perPixel}, slot, y) => {
    for (let at = 0; at < slot.waves.length; at += 4) {
      const begin = slot.waves[at], end = begin + slot.waves[at + 1];
      if (end < view.from || begin > view.to) continue;
      const left = (begin - view.from) / perPixel, wide = Math.max((end - begin) / perPixel - 0.5, 1);
      const orange = wide * Math.min(slot.waves[at + 3] / Math.max(end - begin, 1), 1);
      const part = (colour, from, to) => {
        const start = Math.max(from, 0), stop = Math.min(to, width);
        context.fillStyle = colour;
        if (start < stop) context.fillRect(start, y, stop - start, SLOT - 1);
      };
      part(STALL, left, left + orange);
      part(WAVE, left + orange, left + wide);
    }
  };
  const draw = () => {
    const area = view.begin(height), [lane] = styleOf("--lane");
    view.axis(area, height, (at, step) => onAxis(at, step, CYCLES));
    drawChart(area);
    trace.slots.forEach((slot, index) => {
      const y = top + index * SLOT;
      area.context.fillStyle = lane;
      area.context.fillRect(0, y, area.width, SLOT - 1);
      (slot.busy ? drawBins : drawWaves)(area, slot, y);
    });
    range.textContent = cycles(view.from) + " to " + cycles(view.to) + " of " + cycles(trace.length) + ". Drag to move, turn the wheel with Ctrl to zoom, point to read.";
  };
  const read = ({x, y, width}) => {
    const at = view.from + x / width * (view.to - view.from), slack = (view.to - view.from) / width;
    if (y >= AXIS && y < AXIS + chart) {
      const [waves] = wavesOver(trace.engines, at, at + slack, 1);
      return {text: waves.toFixed(1) + " waves at " + cycles(at)};
    }
    const slot = trace.slots[Math.floor((y - top) / SLOT)];
    if (!slot) return null;
    if (slot.busy) {
      const bin = Math.min(Math.floor(at / trace.length * slot.busy.length), slot.busy.length - 1);
      if (!slot.busy[bin]) return null;
      const share = (value) => Math.round(value / 2.55) + " %";
      return {text: slot.name + ": waves for " + share(slot.busy[bin]) + ", stalled for " + share(slot.stall[bin]) + " of " + cycles(trace.length / slot.busy.length) + " at " + cycles(at)};
    }
    for (let index = 0; index < slot.waves.length; index += 4) {
      const [begin, length, latency, stall] = slot.waves.slice(index, index + 4);
      if (begin - slack <= at && at <= begin + length + slack) {
        return {text: slot.name + ": " + digits(length) + " cycles, " + digits(latency) + " in instructions, " + digits(stall) + " stalled, at " + digits(begin)};
      }
    }
    return null;
  };
  const view = makeView({canvas, tip, length: trace.length, least: 16, draw, read});
  for (const [action, label, name] of ACTIONS) {
    const button = make("button", label, tools);
    button.type = "button";
    button.setAttribute("aria-label", name);
    button.addEventListener("click", view.actions[action]);
  }
  draw();
};
data.traces.forEach(addTrace);

const addUnits = ({agent, engines}) => {
  const section = make("section", undefined, byId("units"));
  make("h2", "Samples of " + agent, section);
  const all = engines.flatMap((engine) => engine.units).reduce((sum, unit) => sum + unit[1], 0);
  addHeat("Compute units: samples", engines, section, (unit) => digits(unit[1]) + " samples, " + percent(unit[1], all) + " %");
};
data.units.forEach(addUnits);
jumpTo("Traces", "traces");
jumpTo("Compute units", "units");
jumpTo("Code", "code");
