// The canvas: an overview, a ruler, and the tracks that are in sight, drawn once a frame from the tiles that are here.
const canvas = byId("canvas"), stage = byId("stage");
const OVERVIEW = 30, RULER = 20, TOP = OVERVIEW + RULER, GUTTER = 190, ROW = 17, THIN = 9, OWNER = 20, GRAPH = 34, GAP = 5;
const LEAST = 20, BIN_BITS = 12, TILE_BINS = 1024;
const state = {
  from: 0, to: 1, top: 0, track: null, record: null, range: null, mark: null, marks: [], query: null, flow: [],
  pinned: new Set(), collapsed: new Set(), hidden: new Set(), filter: "", colour: "name", theme: "", order: [],
};
let rows = [], tall = 0, width = 1, height = 1, context = null, isDue = false;
const redraw = () => {
  if (isDue || !meta) return;
  isDue = true;
  requestAnimationFrame(() => { isDue = false; paint(); });
};
const span = () => state.to - state.from;
const plot = () => Math.max(width - GUTTER, 1);
const xOf = (at) => GUTTER + (at - state.from) / span() * plot();
const timeAt = (x) => state.from + (x - GUTTER) / plot() * span();

const isShown = (track) => !state.hidden.has(track.id) && (!state.filter || (track.owner + " " + track.label).toLowerCase().includes(state.filter));
const heightOf = (track) => state.collapsed.has(track.id) ? THIN : track.kind === "memory" ? GRAPH : track.lanes * ROW;
// Rows of the canvas: pinned tracks first, then the others below what they belong to.
const layout = () => {
  rows = [];
  let y = 0, owner = null;
  const place = (track) => {
    const tall = heightOf(track);
    rows.push({track, y, tall});
    y += tall + GAP;
  };
  const shown = state.order.map((id) => trackOf.get(id)).filter(isShown);
  const pinned = shown.filter((track) => state.pinned.has(track.id));
  if (pinned.length) { rows.push({owner: "Pinned", y, tall: OWNER}); y += OWNER; }
  pinned.forEach(place);
  for (const track of shown) {
    if (state.pinned.has(track.id)) continue;
    if (track.owner !== owner) {
      owner = track.owner;
      rows.push({owner, y, tall: OWNER});
      y += OWNER;
    }
    place(track);
  }
  tall = y;
  state.top = Math.min(Math.max(state.top, 0), Math.max(tall - (height - TOP), 0));
};
const rowOf = (track) => rows.find((row) => row.track === track);

const KINDS = {kernels: 0, copies: 4, memory: 1, markers: 6, calls: 7};
const inkFor = (track, name) => {
  if (state.colour === "kind") return INKS[KINDS[track.kind]];
  if (state.colour === "track") return inkOf(track.owner + track.label);
  return name < 0 ? INKS[KINDS[track.kind]] : inkOf(nameOf(name));
};
const isDim = (name) => state.query && !state.query.wanted.has(name);

// Which tiles show a track: its records where these are few, else bins of which a pixel has at least one.
const choose = (track) => {
  const index = indexNow(track);
  const perPixel = span() / plot(), level = Math.floor((Math.log2(Math.max(perPixel, 1)) - BIN_BITS) / 2);
  const levels = track.levels, coarser = levels.find((known) => known >= level) ?? levels[levels.length - 1];
  if (!index) return coarser === undefined ? null : {level: Math.max(coarser, level)};
  const list = tilesIn(index, state.from, state.to);
  if (list.length <= 4 || coarser === undefined || (list.length <= 64 && !levels.includes(level))) return {list};
  return {level: coarser};
};

const drawRecords = (row, list) => {
  const {track} = row, y = TOP + row.y - state.top, isThin = state.collapsed.has(track.id);
  const last = new Float64Array(32).fill(-1);
  let isHere = true;
  for (const number of list) {
    const records = tile(RECORDS, track.id, 0, number);
    if (records === undefined) isHere = false;
    if (!records) continue;
    for (let at = 0; at < records.count; at += 1) {
      const start = records.start[at], end = start + records.length[at];
      if (start > state.to) break;
      if (end < state.from) continue;
      const lane = isThin ? 0 : records.lane[at];
      const left = Math.max(xOf(start), GUTTER), right = Math.max(Math.min(xOf(end), width), left + 1);
      // What ends on a pixel that is drawn adds nothing to the picture.
      if (right <= last[lane] + 0.5) continue;
      last[lane] = right;
      drawRecord(row, y, lane, left, right, records.name[at], records.weight[at]);
    }
  }
  return isHere;
};
const drawRecord = ({track, tall}, y, lane, left, right, name, weight) => {
  const ink = inkFor(track, name), wide = right - left;
  context.globalAlpha = isDim(name) ? 0.22 : 1;
  context.fillStyle = ink.box;
  if (track.kind === "memory") {
    const high = Math.max(weight / Math.max(track.peak, 1) * tall, 1);
    context.fillRect(left, y + tall - high, wide, high);
    context.globalAlpha = 1;
    return;
  }
  const high = state.collapsed.has(track.id) ? THIN : ROW - 2;
  context.fillRect(left, y + lane * ROW, wide > 3 ? wide - 0.7 : wide, high);
  if (wide > 26 && high > THIN) {
    // A dim box is nearly the background.
    context.globalAlpha = 1;
    context.fillStyle = isDim(name) ? dimText : ink.text;
    context.fillText(fit(context, nameOf(name), wide - 7), left + 3, y + lane * ROW + 2);
  }
  context.globalAlpha = 1;
};

const drawBins = (row, level) => {
  const {track} = row, bits = 2 ** (BIN_BITS + 2 * level), y = TOP + row.y - state.top;
  const first = Math.max(Math.floor(state.from / bits / TILE_BINS), 0), last = Math.floor(Math.min(state.to, track.last) / bits / TILE_BINS);
  const pixels = Math.ceil(plot());
  const busy = new Float64Array(pixels), best = new Float64Array(pixels), top = new Int32Array(pixels).fill(-2);
  const perPixel = span() / plot();
  let isHere = true;
  for (let number = first; number <= last; number += 1) {
    const bins = tile(BINS, track.id, level, number);
    if (bins === undefined) isHere = false;
    if (!bins) continue;
    for (let at = 0; at < bins.count; at += 1) {
      const start = (number * TILE_BINS + bins.place[at]) * bits;
      if (start + bits < state.from || start > state.to) continue;
      const low = Math.max(Math.floor((start - state.from) / perPixel), 0);
      const high = Math.min(Math.floor((start + bits - state.from) / perPixel - 1e-6), pixels - 1);
      const value = track.kind === "memory" ? bins.peak[at] : bins.busy[at] / Math.max(high - low + 1, 1);
      for (let pixel = low; pixel <= Math.max(high, low) && pixel < pixels; pixel += 1) {
        busy[pixel] = track.kind === "memory" ? Math.max(busy[pixel], value) : busy[pixel] + value;
        const isHit = state.query?.wanted.has(bins.name[at]);
        if (bins.time[at] > best[pixel] || isHit || top[pixel] === -2) {
          best[pixel] = isHit ? Infinity : bins.time[at];
          top[pixel] = bins.name[at];
        }
      }
    }
  }
  const whole = track.kind === "memory" ? Math.max(track.peak, 1) : perPixel;
  const room = state.collapsed.has(track.id) ? THIN : row.tall - 2;
  // Neighbours of the same look are one rectangle.
  let from = 0, look = null;
  const flush = (pixel) => {
    if (!look) return;
    context.globalAlpha = look.dim ? 0.22 : 1;
    context.fillStyle = look.colour;
    context.fillRect(GUTTER + from, y + room - look.high, pixel - from, look.high);
  };
  for (let pixel = 0; pixel <= pixels; pixel += 1) {
    let next = null;
    if (pixel < pixels && top[pixel] !== -2) {
      const high = Math.max(Math.round(Math.min(busy[pixel] / whole, 1) * room), 2);
      next = {high, colour: inkFor(track, top[pixel]).box, dim: isDim(top[pixel])};
    }
    if (next?.high === look?.high && next?.colour === look?.colour && next?.dim === look?.dim) continue;
    flush(pixel);
    from = pixel;
    look = next;
  }
  context.globalAlpha = 1;
  return isHere;
};

let isComplete = false, dimText = "";
const drawTrack = (row) => {
  const chosen = choose(row.track);
  if (!chosen) return false;
  if (chosen.list) return drawRecords(row, chosen.list);
  return drawBins(row, chosen.level);
};

const drawRuler = () => {
  const [faint, line] = styleOf("--faint", "--line");
  const smallest = Math.max(span() / plot() * 96, 1), power = 10 ** Math.floor(Math.log10(smallest));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= smallest);
  for (let at = Math.ceil(state.from / step) * step; at <= state.to; at += step) {
    const x = xOf(at);
    context.fillStyle = line;
    context.fillRect(x, OVERVIEW + 4, 1, height);
    context.fillStyle = faint;
    context.fillText(onAxis(at, step, TIMES), x + 4, OVERVIEW + 5);
  }
};

// The whole recording: how busy queues are, what of it is in sight, and where hits are.
const drawOverview = () => {
  const [lane, accent, pick, text] = styleOf("--lane", "--accent", "--pick", "--text");
  const wide = plot(), length = Math.max(meta.length, 1);
  context.fillStyle = lane;
  context.fillRect(GUTTER, 3, wide, OVERVIEW - 6);
  const level = Math.max(Math.ceil((Math.log2(length / TILE_BINS) - BIN_BITS) / 2), 0);
  const bits = 2 ** (BIN_BITS + 2 * level);
  const busy = new Float64Array(TILE_BINS);
  const devices = tracks.filter((track) => isOp(track) && track.levels.includes(level)).slice(0, 16);
  const counted = devices.length ? devices : tracks.filter((track) => track.kind === "calls" && track.levels.includes(level)).slice(0, 16);
  for (const track of counted) {
    const bins = tile(BINS, track.id, level, 0);
    for (let at = 0; at < (bins?.count ?? 0); at += 1) busy[bins.place[at]] = Math.min(busy[bins.place[at]] + bins.busy[at] / bits, 1);
  }
  context.fillStyle = PALETTE[4];
  for (let bin = 0; bin < TILE_BINS && bin * bits < length; bin += 1) {
    if (!busy[bin]) continue;
    const left = bin * bits / length * wide, right = Math.min((bin + 1) * bits / length, 1) * wide, high = Math.max(busy[bin] * (OVERVIEW - 8), 1);
    context.fillRect(GUTTER + left, OVERVIEW - 4 - high, Math.max(right - left, 1), high);
  }
  if (state.query) {
    context.fillStyle = PALETTE[5];
    for (const [left, right] of hitSpots(wide)) context.fillRect(GUTTER + left, 2, Math.max(right - left, 1), 5);
  }
  const left = GUTTER + state.from / length * wide, right = Math.max(GUTTER + state.to / length * wide, left + 3);
  context.fillStyle = pick;
  context.fillRect(left, 1, right - left, OVERVIEW - 2);
  context.strokeStyle = accent;
  context.strokeRect(left + 0.5, 1.5, Math.max(right - left - 1, 1), OVERVIEW - 3);
  context.fillStyle = text;
  context.fillText("overview", 8, 9);
};
// Stretches of the overview with hits, from records where a tile is wide there, else from what tiles hold.
const MOST_READ = 200;
let spots = null;
const hitSpots = (wide) => {
  if (spots?.query === state.query && spots.wide === wide && spots.isWhole) return spots.list;
  const list = [], perPixel = Math.max(meta.length, 1) / wide;
  let isWhole = true, read = 0;
  for (const track of tracks) {
    const index = indexNow(track);
    if (!index) { isWhole = false; continue; }
    for (let number = 0; number < index.count; number += 1) {
      if (!mayHave(index, number, state.query.wanted)) continue;
      let records = null;
      if (read < MOST_READ && (!hasSums(index, number) || index.end[number] - index.first[number] > 2 * perPixel)) {
        read += 1;
        records = tile(RECORDS, track.id, 0, number);
      }
      if (records) {
        let last = -1;
        for (let row = 0; row < records.count; row += 1) {
          const left = Math.floor(records.start[row] / perPixel);
          if (!state.query.wanted.has(records.name[row]) || left === last) continue;
          list.push([left, (records.start[row] + records.length[row]) / perPixel]);
          last = left;
        }
      } else {
        if (records === undefined) isWhole = false;
        if (hasSums(index, number)) list.push([index.first[number] / perPixel, index.first[number] / perPixel + 1]);
      }
    }
  }
  spots = {query: state.query, wide, isWhole, list};
  return list;
};

const drawBand = ({from, to}, colour, label) => {
  const left = Math.max(xOf(from), GUTTER), right = Math.min(Math.max(xOf(to), left + 1), width);
  if (left > width || right < GUTTER) return;
  context.fillStyle = colour;
  context.fillRect(left, OVERVIEW, right - left, height);
  if (label) {
    const wide = context.measureText(label).width + 8;
    const [accent, card] = styleOf("--accent", "--card");
    context.fillStyle = accent;
    context.fillRect(left, OVERVIEW, wide, 15);
    context.fillStyle = card;
    context.fillText(label, left + 4, OVERVIEW + 2);
  }
};
const spotOf = (record, at) => {
  const row = rowOf(record.track);
  if (!row) return null;
  const lane = state.collapsed.has(record.track.id) ? 0 : record.lane;
  return {x: xOf(at), y: TOP + row.y - state.top + lane * ROW + ROW / 2};
};
const drawFlow = () => {
  const [text] = styleOf("--text");
  context.strokeStyle = text;
  context.fillStyle = text;
  context.lineWidth = 1.4;
  for (const {from, to, at, into} of state.flow) {
    const a = spotOf(from, at), b = spotOf(to, into);
    if (!a || !b) continue;
    const bend = Math.max(Math.min(Math.abs(b.x - a.x) / 2, 120), 18);
    context.beginPath();
    context.moveTo(a.x, a.y);
    context.bezierCurveTo(a.x + bend, a.y, b.x - bend, b.y, b.x, b.y);
    context.stroke();
    context.beginPath();
    context.moveTo(b.x, b.y);
    context.lineTo(b.x - 7, b.y - 4);
    context.lineTo(b.x - 7, b.y + 4);
    context.fill();
  }
  context.lineWidth = 1;
};

const drawGutter = () => {
  const [card, text, faint, line, head, pick] = styleOf("--card", "--text", "--faint", "--line", "--head", "--pick");
  context.fillStyle = card;
  context.fillRect(0, TOP, GUTTER, height);
  for (const row of rows) {
    const y = TOP + row.y - state.top;
    if (y + row.tall < TOP || y > height) continue;
    if (row.owner) {
      context.fillStyle = head;
      context.fillRect(0, y, width, OWNER - 3);
      context.fillStyle = text;
      context.fillText(fit(context, row.owner, width - 16), 8, y + 2);
      continue;
    }
    const {track} = row;
    if (track === state.track) {
      context.fillStyle = pick;
      context.fillRect(0, y - 2, GUTTER, row.tall + 3);
    }
    const isSmall = row.tall < ROW;
    context.fillStyle = text;
    context.fillText(fit(context, (state.pinned.has(track.id) ? "\u25C6 " : "") + track.label, GUTTER - 16), 8, isSmall ? y - 2 : y + 2);
    if (row.tall >= 2 * ROW) {
      context.fillStyle = faint;
      const share = track.kind === "memory" ? "peak " + show.bytes(track.peak) : digits(100 * track.busy / Math.max(meta.length, 1)) + "\u202f% busy";
      context.fillText(fit(context, show.count(track.count) + " · " + share, GUTTER - 16), 8, y + ROW);
    }
  }
  context.fillStyle = line;
  context.fillRect(GUTTER - 1, 0, 1, height);
  if (tall > height - TOP) {
    const room = height - TOP, high = Math.max(room * room / tall, 24);
    context.fillStyle = faint;
    context.globalAlpha = 0.5;
    context.fillRect(width - 5, TOP + state.top / (tall - room) * (room - high), 4, high);
    context.globalAlpha = 1;
  }
};

const paint = () => {
  const ratio = window.devicePixelRatio || 1;
  width = Math.max(stage.clientWidth, GUTTER + 50);
  height = Math.max(stage.clientHeight, TOP + 40);
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
  }
  context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11.5px system-ui, sans-serif";
  context.textBaseline = "top";
  layout();
  const [lane, pick, accent] = styleOf("--lane", "--pick", "--accent");
  [dimText] = styleOf("--faint");
  isComplete = !failed;
  context.save();
  context.beginPath();
  context.rect(0, TOP, width, height - TOP);
  context.clip();
  const seen = rows.filter((row) => row.track && TOP + row.y - state.top < height && row.y + row.tall > state.top);
  for (const row of seen) {
    context.fillStyle = lane;
    context.fillRect(GUTTER, TOP + row.y - state.top, plot(), row.tall);
  }
  context.restore();
  drawRuler();
  context.save();
  context.beginPath();
  context.rect(0, TOP, width, height - TOP);
  context.clip();
  for (const row of seen) isComplete = drawTrack(row) && isComplete;
  if (state.record) {
    const row = rowOf(state.record.track);
    if (row) {
      const {record} = state, isThin = state.collapsed.has(record.track.id) || record.track.kind === "memory";
      const left = Math.max(xOf(record.start), GUTTER), right = Math.min(Math.max(xOf(record.start + record.length), left + 2), width);
      context.strokeStyle = accent;
      context.lineWidth = 2;
      context.strokeRect(left - 1, TOP + row.y - state.top + (isThin ? 0 : record.lane * ROW) - 1, right - left + 2, (isThin ? row.tall : ROW - 2) + 2);
      context.lineWidth = 1;
    }
  }
  drawGutter();
  context.beginPath();
  context.rect(GUTTER, TOP, width, height - TOP);
  context.clip();
  drawFlow();
  context.restore();
  drawOverview();
  for (const mark of state.marks) drawBand(mark, pick, time(mark.to - mark.from));
  if (state.mark) drawBand(state.mark, pick, time(state.mark.to - state.mark.from));
  if (state.range) drawBand(state.range, pick, time(state.range.to - state.range.from));
  const step = span() / plot() * 10;
  byId("range").textContent = onAxis(state.from, step, TIMES) + " to " + onAxis(state.to, step, TIMES) + ", " + time(span()) + " of " + time(meta.length);
  if (failed) say("Cannot read tiles: " + failed);
};
