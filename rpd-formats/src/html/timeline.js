// Timeline. Tracks hold exact slices (start, duration, name, depth) when there are few, else bins over the whole time.
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
byId("detail").textContent = data.detail;

// The colours of the name of this number; of several ones the same.
const coloursOf = (name) => inkOf(data.names[name] ?? "");

const paint = () => {
  const {from, to} = view, area = view.begin(height), {context, width, perPixel} = area;
  const [text, lane] = styleOf("--text", "--lane");
  const x = (at) => (at - from) / perPixel;
  view.axis(area, height, (at, step) => onAxis(at, step, TIMES));

  for (const track of data.tracks) {
    context.fillStyle = text;
    context.fillText(fit(context, track.label, width - 4), 0, track.y + 1);
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
        const colours = coloursOf(slices[at + 2]);
        context.fillStyle = colours.box;
        context.fillRect(left, y, wide, ROW - 1);
        if (wide > 36) {
          context.fillStyle = colours.text;
          context.fillText(fit(context, data.names[slices[at + 2]], wide - 4), left + 2, y + 1);
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
        context.fillStyle = coloursOf(track.names[best]).box;
        context.fillRect(pixel, top + BIN_HEIGHT * (1 - share), 1, BIN_HEIGHT * share);
      }
    }
  }
  byId("range").textContent = time(from) + " to " + time(to) + " of " + time(data.length) + ". Drag to move, turn the wheel with Ctrl to zoom, point to read" + (data.frames.length ? ", click a call to see its stack." : ".");
};

// The slice at a place: its text, and its stack if it has one.
const sliceAt = ({x, y, width}) => {
  const track = data.tracks.find((track) => y >= track.y && y < track.y + track.height);
  if (!track) return null;
  const {from, to} = view;
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
const view = makeView({canvas: byId("canvas"), tip: byId("tip"), length: data.length, least: 50, draw: paint, read: sliceAt, click: showStack});
for (const [id, action] of Object.entries(view.actions)) byId(id).addEventListener("click", action);
byId("timeline").hidden = data.tracks.length === 0;
paint();
