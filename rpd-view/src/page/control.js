// Pointer, keys and address.
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const setView = (from, to) => {
  const length = Math.max(meta.length, 1), wide = clamp(to - from, LEAST, Math.max(length * 1.1, LEAST));
  // A little room beyond both ends.
  const edge = wide * 0.1;
  state.from = clamp(from, -edge, Math.max(length + edge - wide, -edge));
  state.to = state.from + wide;
  changed();
};
const zoom = (factor, around) => {
  const middle = around ?? (state.from + state.to) / 2;
  const wide = clamp(span() * factor, LEAST, meta.length * 1.1);
  setView(middle - (middle - state.from) * wide / span(), middle + (state.to - middle) * wide / span());
};
const zoomTo = (from, to) => {
  const edge = Math.max((to - from) * 0.08, LEAST / 4);
  setView(from - edge, to + edge);
};
// In sight, at the zoom that there is.
const moveTo = (from, to) => {
  if (from >= state.from && to <= state.to) { changed(); return; }
  const wide = Math.max(span(), (to - from) * 1.2), middle = (from + to) / 2;
  setView(middle - wide / 2, middle + wide / 2);
};
const everything = () => setView(-meta.length * 0.01, meta.length * 1.01);

const bringIntoSight = (track) => {
  layout();
  const row = rowOf(track);
  if (!row) return;
  const room = height - TOP;
  if (row.y - OWNER < state.top) state.top = Math.max(row.y - OWNER, 0);
  if (row.y + row.tall > state.top + room) state.top = row.y + row.tall - room;
};
const setTrack = (track) => {
  state.track = track;
  bringIntoSight(track);
  say(track.owner + ", " + track.label + ": " + show.count(track.count) + " records");
  changed();
};
const describe = async (record) => {
  const name = await nameFor(record.name);
  return (name || record.track.label) + ", " + time(record.length) + " at " + onAxis(record.start, 1, TIMES) + ", " + record.track.label;
};
// Chooses a record: its panel, its arrows.
const pick = async (record, isMoved = true) => {
  state.record = record;
  state.flow = [];
  if (!record) { showRecord(null); changed(); return; }
  state.track = record.track;
  bringIntoSight(record.track);
  if (isMoved) moveTo(record.start, record.start + record.length); else changed();
  const [text] = await Promise.all([describe(record), showRecord(record)]);
  if (state.record !== record) return;
  say(text);
  state.flow = await flowOf(record);
  if (state.record === record) redraw();
};
const flowOf = async (record) => {
  const launch = await launchOf(record), flow = [];
  if (launch?.record) flow.push({from: launch.record, to: record, at: launch.begin, into: record.start});
  const waiter = await waiterFor(record, launch);
  if (waiter) flow.push({from: record, to: waiter, at: record.start + record.length, into: record.start + record.length});
  if (record.track.kind === "calls") {
    for (const op of await launchedBy(record)) flow.push({from: record, to: op, at: record.start, into: op.start});
  }
  return flow;
};
// Along the flow: from a call to what it launched and on to the call that waits, or back.
const follow = async (step) => {
  const {record} = state;
  if (!record) return;
  let next = null;
  if (record.track.kind === "calls") {
    if (step > 0) [next] = await launchedBy(record);
  } else if (isOp(record.track)) {
    const launch = await launchOf(record);
    if (step < 0) next = launch?.record;
    else {
      const others = launch?.record ? await launchedBy(launch.record) : [];
      next = others.find((op) => order(op, record) > 0) ?? await waiterFor(record, launch);
    }
  }
  if (next) await pick(next); else say(step > 0 ? "Nothing follows in the flow" : "Nothing is before it in the flow");
};
const along = async (step) => {
  const track = state.record?.track ?? state.track;
  if (!track) { say("No track is chosen: arrows up and down choose one"); return; }
  const next = state.record && state.record.track === state.track ? await neighbour(state.record, step) : await recordNear(state.track ?? track, state.from);
  if (next) await pick(next); else say("The track has no more records");
};
const stepTrack = async (step) => {
  const list = rows.filter((row) => row.track).map((row) => row.track);
  if (!list.length) return;
  const at = list.indexOf(state.track);
  const track = list[clamp(at < 0 ? 0 : at + step, 0, list.length - 1)];
  setTrack(track);
  if (state.record && state.record.track !== track) {
    const near = await recordNear(track, state.record.start);
    if (near) await pick(near, false);
  }
};
const setRange = (range) => {
  state.range = range;
  changed();
  showSums();
};
const toggle = (set, what) => {
  if (!state.track) { say("No track is chosen: arrows up and down choose one"); return; }
  const {id, label} = state.track, is = !set.has(id);
  if (is) set.add(id); else set.delete(id);
  say(label + (is ? " is " : " is no more ") + what);
  bringIntoSight(state.track);
  changed();
};
const selected = () => state.range ?? (state.record && {from: state.record.start, to: state.record.start + state.record.length});
let zoomed = null;
const fitSelection = () => {
  const now = selected();
  // The second time in a row: everything.
  if (!now || (zoomed && zoomed.from === state.from && zoomed.to === state.to)) { everything(); zoomed = null; return; }
  zoomTo(now.from, now.to);
  zoomed = {from: state.from, to: state.to};
};
const mark = (isKept) => {
  const now = selected() ?? state.mark;
  if (!now) { say("Nothing is selected that could be marked"); return; }
  if (isKept) { state.marks.push({from: now.from, to: now.to}); state.mark = null; } else state.mark = {from: now.from, to: now.to};
  say((isKept ? "Kept a mark of " : "Marked ") + time(now.to - now.from));
  showMarks();
  changed();
};
const clear = () => {
  if (byId("keys").open) { byId("keys").close(); return; }
  state.record = null;
  state.flow = [];
  state.mark = null;
  state.query = null;
  byId("query").value = "";
  byId("hits").textContent = "";
  showRecord(null);
  showMarks();
  setRange(null);
};

const THEMES = ["", "dark", "light"];
const setTheme = (theme) => {
  state.theme = theme;
  if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;
  changed();
};
const nextTheme = () => {
  setTheme(THEMES[(THEMES.indexOf(state.theme) + 1) % THEMES.length]);
  say("Theme: " + (state.theme || "that of the system"));
};
// Search.
const find = async () => {
  const text = byId("query").value.trim();
  if (!text) { state.query = null; byId("hits").textContent = ""; changed(); return false; }
  if (state.query?.text === text) return true;
  byId("hits").textContent = "\u2026";
  const found = await search(text);
  if (byId("query").value.trim() !== text) return false;
  state.query = found;
  byId("hits").textContent = show.count(found.count) + (found.count === 1 ? " hit" : " hits");
  say(byId("hits").textContent + " for " + text);
  changed();
  return true;
};
const hop = async (step) => {
  if (!(await find()) || !state.query.count) return;
  const hit = await nextHit(state.query, state.record, step) ?? await nextHit(state.query, null, step);
  if (hit) await pick(hit);
};
const parseTime = (text) => {
  const found = /^\s*([\d.,]+)\s*(ns|us|µs|ms|s|)\s*$/.exec(text);
  if (!found) return null;
  const value = Number(found[1].replaceAll(",", "")) * {"": 1, ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9}[found[2]];
  return Number.isFinite(value) ? value : null;
};
const goTo = (text) => {
  const at = parseTime(text);
  if (at === null || at > meta.length) { say("'" + text + "' is no time of this recording, such as 1.5ms"); return; }
  setView(at - span() / 2, at + span() / 2);
  canvas.focus();
};

let pointer = null;
const KEYS = [
  ["w", "Zoom in at the pointer", () => zoom(0.6, pointer)], ["s", "Zoom out", () => zoom(1 / 0.6, pointer)],
  ["a", "Left", () => pan(-0.2)], ["d", "Right", () => pan(0.2)],
  ["A", "Left, faster", () => pan(-0.8)], ["D", "Right, faster", () => pan(0.8)],
  ["W", "Zoom in, faster", () => zoom(0.2, pointer)], ["S", "Zoom out, faster", () => zoom(5, pointer)],
  ["ArrowLeft", "Left", () => pan(-1 / 3)], ["ArrowRight", "Right", () => pan(1 / 3)],
  ["+", "Zoom in", () => zoom(0.5)], ["-", "Zoom out", () => zoom(2)], ["0", "Everything", () => everything()],
  ["f", "Zoom to the selection; again: everything", fitSelection],
  ["m", "Mark the time of the selection", () => mark(false)], ["M", "Keep the mark", () => mark(true)],
  ["/", "Search, also Ctrl+F", () => byId("query").focus()],
  ["n", "Next hit, also Enter", () => hop(1)], ["N", "Previous hit, also Shift+Enter", () => hop(-1)],
  [",", "Previous record of the track", () => along(-1)], [".", "Next record of the track", () => along(1)],
  ["[", "Back along the flow: to the launching call", () => follow(-1)], ["]", "On along the flow: to what was launched, and to the call that waits", () => follow(1)],
  ["ArrowUp", "Track above", () => stepTrack(-1)], ["ArrowDown", "Track below", () => stepTrack(1)],
  ["p", "Pin the track", () => toggle(state.pinned, "pinned")], ["c", "Collapse the track", () => toggle(state.collapsed, "collapsed")],
  ["g", "Go to a time", () => byId("go").focus()], ["t", "Next theme", nextTheme],
  ["Escape", "Clear", clear], ["?", "This list", () => byId("keys").showModal()],
];
const pan = (part) => setView(state.from + span() * part, state.to + span() * part);
const isField = (target) => target instanceof HTMLInputElement && target.type !== "checkbox" || target instanceof HTMLSelectElement;
// A failure of what a key starts is told where all is told.
const attempt = (action) => Promise.resolve().then(action).catch((error) => { failed = error.message; redraw(); });
document.addEventListener("keydown", (event) => {
  if (!meta) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f") { event.preventDefault(); byId("query").focus(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (isField(event.target)) {
    if (event.key === "Escape") { canvas.focus(); event.preventDefault(); }
    if (event.key === "Enter" && event.target.id === "query" && event.shiftKey) { event.preventDefault(); attempt(() => hop(-1)); }
    return;
  }
  if (byId("keys").open && event.key !== "Escape") return;
  if (event.key === "Enter" && event.target === canvas) { event.preventDefault(); attempt(() => hop(event.shiftKey ? -1 : 1)); return; }
  const isArrow = event.key.startsWith("Arrow");
  // Arrows scroll the panel where it has the focus.
  if (isArrow && event.target !== canvas && event.target !== document.body) return;
  const found = KEYS.find(([key]) => key === event.key) ?? (event.key === "=" ? KEYS.find(([key]) => key === "+") : null);
  if (!found) return;
  event.preventDefault();
  attempt(found[2]);
});

const spot = (event) => {
  const box = canvas.getBoundingClientRect();
  return {x: event.clientX - box.left, y: event.clientY - box.top};
};
const rowAt = (y) => rows.find((row) => y >= TOP + row.y - state.top && y < TOP + row.y - state.top + row.tall + GAP - 1);
// The record that is drawn at a place, if its tile is here.
const recordUnder = ({x, y}) => {
  const row = y > TOP && x > GUTTER ? rowAt(y) : null, chosen = row?.track ? choose(row.track) : null;
  if (!chosen?.list) return null;
  const at = timeAt(x), slack = span() / plot() * 2, {track} = row;
  const lane = state.collapsed.has(track.id) || track.kind === "memory" ? null : Math.floor((y - TOP - row.y + state.top) / ROW);
  let best = null, least = Infinity;
  for (const number of chosen.list) {
    const records = tile(RECORDS, track.id, 0, number);
    for (let place = 0; place < (records?.count ?? 0); place += 1) {
      const start = records.start[place], end = start + records.length[place];
      if (start - slack > at) break;
      if (end + slack < at || (lane !== null && records.lane[place] !== lane)) continue;
      const away = Math.max(start - at, at - end, 0);
      if (away <= least) {
        least = away;
        best = {track, number, row: place, start, length: records.length[place], name: records.name[place], lane: records.lane[place], weight: records.weight[place]};
      }
    }
  }
  return best;
};
let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  const at = spot(event);
  drag = {...at, from: state.from, to: state.to, top: state.top, isMoved: false};
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  const at = spot(event), tip = byId("tip");
  if (!meta) return;
  pointer = at.x > GUTTER ? timeAt(at.x) : null;
  if (drag && (Math.abs(at.x - drag.x) > 3 || Math.abs(at.y - drag.y) > 3)) drag.isMoved = true;
  if (drag?.isMoved) {
    tip.hidden = true;
    if (drag.y < OVERVIEW) {
      const middle = (at.x - GUTTER) / plot() * meta.length, wide = drag.to - drag.from;
      setView(middle - wide / 2, middle + wide / 2);
    } else if (drag.y < TOP || event.shiftKey) {
      const moved = (at.x - drag.x) / plot() * (drag.to - drag.from);
      setView(drag.from - moved, drag.to - moved);
    } else if (drag.x > GUTTER) {
      const [from, to] = [timeAt(drag.x), timeAt(Math.max(at.x, GUTTER))].sort((a, b) => a - b);
      state.range = {from: Math.max(Math.round(from), 0), to: Math.round(to)};
      redraw();
    }
    return;
  }
  const found = drag ? null : recordUnder(at);
  tip.hidden = !found;
  if (found) {
    tip.textContent = (nameOf(found.name) || show.bytes(found.weight)) + ": " + time(found.length) + " at " + onAxis(found.start, 1, TIMES);
    tip.style.top = at.y + 16 + "px";
    tip.style.left = Math.max(Math.min(at.x + 8, width - tip.offsetWidth), 0) + "px";
  }
});
canvas.addEventListener("pointerup", (event) => {
  const was = drag, at = spot(event);
  drag = null;
  if (!was || !meta) return;
  if (was.isMoved) {
    if (was.y >= TOP && was.x > GUTTER && !event.shiftKey) setRange(state.range);
    return;
  }
  if (at.y < OVERVIEW) {
    const middle = (at.x - GUTTER) / plot() * meta.length;
    setView(middle - span() / 2, middle + span() / 2);
    return;
  }
  const row = rowAt(at.y);
  if (at.x <= GUTTER) {
    if (row?.track) setTrack(row.track);
    return;
  }
  const found = recordUnder(at);
  if (found) attempt(() => pick(found, false));
  else if (row?.track) setTrack(row.track);
});
canvas.addEventListener("pointercancel", () => { drag = null; });
canvas.addEventListener("pointerleave", () => { byId("tip").hidden = true; pointer = null; });
canvas.addEventListener("wheel", (event) => {
  if (!meta) return;
  event.preventDefault();
  const turned = event.deltaY || event.deltaX;
  if (event.ctrlKey) zoom(turned > 0 ? 1.25 : 0.8, timeAt(spot(event).x));
  else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / plot());
  else { state.top += event.deltaY; changed(); }
}, {passive: false});

// The address holds the place, so that it can be kept and shared.
const stretch = ({from, to}) => Math.round(from) + "-" + Math.round(to);
const unstretch = (text) => {
  const [from, to] = text.split("-").map(Number);
  return Number.isFinite(from) && Number.isFinite(to) ? {from, to} : null;
};
const address = () => {
  const words = new URLSearchParams();
  if (token) words.set("k", token);
  words.set("at", [state.from, state.to].map((value) => Math.round(value)).join("~"));
  if (state.top) words.set("top", Math.round(state.top));
  if (state.record) words.set("record", [state.record.track.id, state.record.number, state.record.row].join("."));
  if (state.range) words.set("range", stretch(state.range));
  if (state.query) words.set("q", state.query.text);
  if (state.marks.length) words.set("marks", state.marks.map(stretch).join("."));
  for (const name of ["pinned", "collapsed", "hidden"]) if (state[name].size) words.set(name, [...state[name]].join("."));
  if (state.colour !== "name") words.set("colour", state.colour);
  if (state.theme) words.set("theme", state.theme);
  return "#" + words;
};
let isNoted = false;
const changed = () => {
  redraw();
  if (isNoted) return;
  isNoted = true;
  setTimeout(() => { isNoted = false; history.replaceState(null, "", address()); }, 150);
};
const AROUND = 12;
const restore = async () => {
  const words = new URLSearchParams(location.hash.slice(1));
  const numbers = (name, by) => (words.get(name) ?? "").split(by).filter((text) => text !== "").map(Number).filter(Number.isFinite);
  for (const name of ["pinned", "collapsed", "hidden"]) for (const id of numbers(name, ".")) if (trackOf.has(id)) state[name].add(id);
  if (["kind", "track"].includes(words.get("colour"))) state.colour = words.get("colour");
  byId("colour").value = state.colour;
  if (THEMES.includes(words.get("theme"))) setTheme(words.get("theme"));
  state.marks = (words.get("marks") ?? "").split(".").filter(Boolean).map(unstretch).filter(Boolean);
  showMarks();
  const [from, to] = numbers("at", "~");
  if (to > from) setView(from, to); else everything();
  [state.top = 0] = numbers("top", ".");
  paint();
  const range = words.has("range") ? unstretch(words.get("range")) : null;
  if (range) setRange(range);
  const [track, number, row] = numbers("record", ".");
  const record = trackOf.has(track) ? await recordAt(trackOf.get(track), number, row) : null;
  if (record) {
    await pick(record, false);
    // An address with a record alone leads to it and what is around it.
    if (!words.has("at")) zoomTo(record.start - AROUND * record.length, record.start + (AROUND + 1) * record.length);
  }
  if (words.get("q")) { byId("query").value = words.get("q"); await find(); }
};

const note = (text) => { make("li", text, byId("notes")); byId("notes").hidden = false; };
const begin = async () => {
  const data = await fetchTile(META, 0, 0, 0);
  if (!data) throw new Error("there is nothing to show");
  meta = JSON.parse(new TextDecoder().decode(data));
  tracks = meta.tracks;
  tracks.forEach((track, place) => { track.place = place; trackOf.set(track.id, track); });
  state.order = tracks.map((track) => track.id);
  const program = (meta.processes[0]?.command ?? "").split(" ")[0].split("/").pop();
  byId("program").textContent = program + (meta.processes.length > 1 ? " and " + (meta.processes.length - 1) + " more" : "");
  byId("program").title = meta.processes.map((process) => process.command).join("\n");
  document.title = "rpd view " + program;
  if (meta.simulated) note("The GPU is simulated: times are those of its model, not of hardware.");
  if (meta.lost) note(show.count(meta.lost) + " records were lost while this was recorded.");
  if (meta.light) note("A light recording: only the latest operations were kept.");
  if (file?.least) note("Of " + show.count(meta.records) + " records those of at least " + time(file.least) + " are in this file one by one, and bins of all; `" + file.command + "` shows all.");
  const list = byId("key-list");
  for (const [key, what] of KEYS) {
    const row = make("tr", undefined, list);
    make("kbd", key, make("td", undefined, row));
    make("td", what, row).style.textAlign = "left";
  }
  showTracks();
  await restore();
  canvas.focus();
};
byId("search").addEventListener("submit", (event) => { event.preventDefault(); attempt(() => hop(1)); });
byId("query").addEventListener("input", () => attempt(find));
byId("previous").addEventListener("click", () => attempt(() => hop(-1)));
byId("jump").addEventListener("submit", (event) => { event.preventDefault(); goTo(byId("go").value); });
byId("in").addEventListener("click", () => zoom(0.5));
byId("out").addEventListener("click", () => zoom(2));
byId("all").addEventListener("click", everything);
byId("theme").addEventListener("click", nextTheme);
byId("help").addEventListener("click", () => byId("keys").showModal());
byId("colour").addEventListener("change", () => { state.colour = byId("colour").value; changed(); });
byId("filter").addEventListener("input", () => { state.filter = byId("filter").value.trim().toLowerCase(); showTracks(); changed(); });
new ResizeObserver(redraw).observe(stage);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
window.addEventListener("beforeprint", () => meta && paint());
// What is shown, for tests and for scripts in the browser's console.
window.rpdView = {
  get isReady() { return meta !== null && isComplete && !failed; },
  get failure() { return failed; },
  get sums() { return sums; },
  get rows() { return rows; },
  get meta() { return meta; },
  state, INKS, contrast, xOf, timeAt, select: (from, to) => setRange({from, to}), zoomTo, pick, recordNear, sumTrack,
};
begin().catch((error) => { failed = error.message; say("Cannot show the timeline: " + error.message); });
