// The panel beside the canvas: a record, sums of a selection, marks and tracks, all as text.
const say = (text) => { byId("status").textContent = text; };
const pair = (list, label, value, exact) => {
  if (value === null || value === undefined || value === "") return;
  make("dt", label, list);
  const cell = make("dd", value, list);
  if (exact !== undefined) cell.title = exact;
};
const button = (parent, text, action) => {
  const node = make("button", text, parent);
  node.type = "button";
  node.addEventListener("click", action);
  return node;
};
const copy = async (text, what) => {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied " + what);
  } catch {
    say("The browser does not let this page copy: " + text);
  }
};
const exact = (ns) => show.count(ns) + " ns";
// A word that a shell takes as it is.
const quoted = (text) => /^[\w./:=@%+,-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";
const dims = (values, at) => values.slice(at, at + 3).join(" × ");
const processOf = (track) => meta.processes[track.process];
const keyOf = (record, values) => {
  const kind = {kernels: "kernel", copies: "copy", calls: "call", markers: "marker"}[record.track.kind];
  return kind ? kind + "|" + (processOf(record.track)?.guid ?? "") + "|" + values[0] : null;
};

// What is known of a record: its panel is made again when all of it is here, unless another one was chosen.
let shownRecord = 0;
const showRecord = async (record) => {
  const turn = shownRecord += 1;
  const section = byId("chosen");
  if (!record) {
    section.replaceChildren();
    make("p", "Click a slice for its details, or drag over a stretch to add it up.", section).className = "hint";
    return;
  }
  const [name, values, launch] = await Promise.all([nameFor(record.name), detailsOf(record), launchOf(record)]);
  const around = launch ? await markersAround(launch.thread, launch.begin) : record.track.kind === "calls" ? await markersAround(record.track.of, record.start) : [];
  const called = launch ? await nameFor(launch.name) : "";
  if (turn !== shownRecord) return;
  section.replaceChildren();
  const {track} = record;
  make("h2", name || track.label, section);
  const list = make("dl", undefined, section);
  pair(list, "Track", track.owner + " · " + track.label);
  pair(list, "Begin", onAxis(record.start, 1, TIMES), exact(record.start));
  pair(list, "End", onAxis(record.start + record.length, 1, TIMES), exact(record.start + record.length));
  pair(list, "Duration", time(record.length), exact(record.length));
  if (track.kind === "copies") {
    pair(list, "Bytes", show.bytes(record.weight), show.count(record.weight));
    if (record.length) pair(list, "Rate", show.rate(record.weight / record.length * 1e9));
  }
  if (track.kind === "memory") pair(list, "In use", show.bytes(record.weight), show.count(record.weight));
  if (track.kind === "kernels") kernelPairs(list, values);
  if (track.kind === "markers") pair(list, "Kind", ["range of the thread", "range between threads", "mark"][values[1]]);
  if (launch) {
    pair(list, launch.isGraph ? "Graph launched by" : "Launched by", called);
    const queued = record.start - launch.begin - launch.length;
    pair(list, "Call began", time(record.start - launch.begin) + " before", exact(record.start - launch.begin));
    pair(list, queued >= 0 ? "Queued" : "Began", queued >= 0 ? time(queued) + " after the call" : time(-queued) + " before the call's end", exact(queued));
  }
  pair(list, "Markers", around.join(" / "));
  pair(list, "Key", keyOf(record, values));
  await showLinks(section, record, name, launch, values);
  section.querySelector("h2").id = "chosen-name";
};
const kernelPairs = (list, values) => {
  pair(list, "Queue, stream", (values[OP.queue] ? values[OP.queue] - 1 : "none") + ", " + values[OP.stream]);
  pair(list, "Grid", dims(values, OP.grid) + " work items");
  pair(list, "Workgroup", dims(values, OP.group));
  const groups = [0, 1, 2].reduce((all, axis) => all * Math.ceil(values[OP.grid + axis] / Math.max(values[OP.group + axis], 1)), 1);
  pair(list, "Workgroups", show.count(groups));
  const kernel = values[OP.kernel] ? meta.kernels[values[OP.kernel] - 1] : null;
  if (kernel) pair(list, "Registers", kernel[0] + " vector, " + kernel[1] + " scalar");
  pair(list, "LDS", show.bytes(values[OP.lds]));
  pair(list, "Scratch", show.bytes(values[OP.scratch]));
};
const showLinks = async (section, record, name, launch, values) => {
  const links = make("div", undefined, section);
  links.className = "row";
  const path = processOf(record.track)?.path ?? "";
  if (launch?.record) button(links, "Launch call", () => pick(launch.record));
  if (isOp(record.track) && launch) button(links, "Wait", () => follow(1));
  if (record.track.kind === "calls") button(links, "What it launched", () => follow(1));
  const of = launch ?? (record.track.kind === "calls" ? {call: values[0]} : null);
  if (of && meta.stacks && !file) {
    button(links, "Place in the source", async () => {
      const found = await ask("/site/" + record.track.process + "/" + of.call);
      const text = found ? new TextDecoder().decode(found) : "no stack was recorded for this call";
      make("p", "Called from: " + text, section).className = "hint";
      say(text);
    });
  }
  if (record.track.kind === "kernels") {
    // The command takes a regular expression.
    const pattern = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const command = "rpd kernel " + quoted(pattern) + " " + quoted(path);
    button(links, "Copy command for this kernel", () => copy(command, command));
    make("code", command, make("p", undefined, section));
  }
};

// Sums of what was selected.
let summed = 0, sums = null;
const showSums = async () => {
  const turn = summed += 1, {range} = state, section = byId("sums");
  section.hidden = !range;
  sums = null;
  if (!range) return;
  section.replaceChildren();
  make("h2", "Selection", section);
  make("p", "Adding up\u2026", section).className = "hint";
  const shown = rows.filter((row) => row.track).map((row) => row.track).filter((track) => track.kind !== "memory");
  const all = [];
  for (const track of shown) {
    const found = await sumTrack(track, range.from, range.to);
    if (turn !== summed) return;
    if (found.all.count) all.push(found);
  }
  // Over tracks: by kind and name, as reports of rpd stats have them; a copy between GPUs once.
  const byName = new Map();
  for (const {track, byName: own} of all) {
    if (track.second) continue;
    for (const [name, sum] of own) {
      const key = track.kind + "\t" + name, into = byName.get(key);
      if (!into) { byName.set(key, {kind: track.kind, name, sum: {...sum}}); continue; }
      into.sum.count += sum.count;
      into.sum.sum += sum.sum;
      into.sum.bytes += sum.bytes;
      into.sum.min = Math.min(into.sum.min, sum.min);
      into.sum.max = Math.max(into.sum.max, sum.max);
      // Times of several tracks may overlap.
      into.sum.union = NaN;
    }
  }
  const list = [...byName.values()].sort((a, b) => b.sum.sum - a.sum.sum);
  for (const row of list) row.text = await nameFor(row.name);
  if (turn !== summed) return;
  sums = {from: range.from, to: range.to, tracks: all, names: list};
  fillSums(section, sums);
};
const COLUMNS = ["count", "sum", "union", "mean", "min", "max", "bytes", "rate"];
const cellsOf = (sum, isCopy) => [sum.count, sum.sum, sum.union, sum.sum / sum.count, sum.min, sum.max, isCopy ? sum.bytes : NaN, isCopy && sum.sum ? sum.bytes / sum.sum * 1e9 : NaN];
const SHOWN = [show.count, time, time, time, time, time, show.bytes, show.rate];
const sumTable = (parent, head, list) => {
  const table = make("table", undefined, make("div", undefined, parent));
  table.parentElement.className = "scroll";
  table.parentElement.tabIndex = 0;
  table.parentElement.setAttribute("role", "region");
  table.parentElement.setAttribute("aria-label", "Sums by " + head.toLowerCase());
  const top = make("tr", undefined, make("thead", undefined, table));
  const isThere = COLUMNS.map((_, at) => list.some((row) => !Number.isNaN(row.cells[at])));
  for (const text of [head, ...COLUMNS.filter((_, at) => isThere[at])]) make("th", text, top).scope = "col";
  const body = make("tbody", undefined, table);
  for (const {text, cells} of list) {
    const row = make("tr", undefined, body);
    make("td", text, row);
    cells.forEach((value, at) => {
      if (!isThere[at]) return;
      const cell = make("td", Number.isNaN(value) ? "" : SHOWN[at](value), row);
      cell.title = Number.isNaN(value) ? "" : show.count(value);
      cell.dataset.exact = Number.isNaN(value) ? "" : value;
    });
  }
};
const MOST_ROWS = 60;
const fillSums = (section, sums) => {
  section.replaceChildren();
  make("h2", "Selection: " + time(sums.to - sums.from), section);
  const unknown = sums.tracks.some((found) => found.isPart);
  const note = "From " + onAxis(sums.from, 1, TIMES) + " to " + onAxis(sums.to, 1, TIMES) + ". What overlaps it counts, with the time that lies in it; rpd stats with --start "
    + (BigInt(meta.origin) + BigInt(Math.round(sums.from))) + " --end " + (BigInt(meta.origin) + BigInt(Math.round(sums.to))) + " gives the same.";
  make("p", note, section).className = "hint";
  if (unknown) make("p", "This file has not all records of the stretch: at the edges of tiles only those that it has are counted.", section).className = "hint";
  if (!sums.tracks.length) { make("p", "Nothing is in it.", section); return; }
  const list = sums.names.slice(0, MOST_ROWS).map((row) => ({text: row.text || row.kind, cells: cellsOf(row.sum, row.kind === "copies")}));
  sumTable(section, "Name", list);
  if (sums.names.length > MOST_ROWS) make("p", show.count(sums.names.length - MOST_ROWS) + " more names are in what is copied.", section).className = "hint";
  sumTable(section, "Track", sums.tracks.map(({track, all}) => ({text: track.label, cells: cellsOf(all, track.kind === "copies")})));
  const links = make("div", undefined, section);
  links.className = "row";
  button(links, "Copy", () => {
    const lines = [["kind", "name", ...COLUMNS].join("\t")];
    for (const row of sums.names) lines.push([row.kind, row.text, ...cellsOf(row.sum, row.kind === "copies").map((value) => Number.isNaN(value) ? "" : value)].join("\t"));
    copy(lines.join("\n") + "\n", show.count(sums.names.length) + " rows");
  });
  button(links, "Zoom", () => zoomTo(sums.from, sums.to));
  button(links, "Clear", () => setRange(null));
};

const showMarks = () => {
  const section = byId("marks"), all = state.mark ? [...state.marks, state.mark] : state.marks;
  section.hidden = all.length === 0;
  section.replaceChildren();
  make("h2", "Marks", section);
  const list = make("ul", undefined, section);
  all.forEach((mark, at) => {
    const item = make("li", undefined, list);
    button(item, onAxis(mark.from, 1, TIMES) + " · " + time(mark.to - mark.from), () => moveTo(mark.from, mark.to));
    if (at > 0) make("span", " " + time(mark.from - all[at - 1].from) + " after the one before", item);
  });
};
const showTracks = () => {
  const list = byId("tracks");
  list.replaceChildren();
  for (const track of tracks) {
    if (state.filter && !(track.owner + " " + track.label).toLowerCase().includes(state.filter)) continue;
    const item = make("li", undefined, list);
    const box = make("input", undefined, item);
    box.type = "checkbox";
    box.checked = !state.hidden.has(track.id);
    box.setAttribute("aria-label", "Show " + track.owner + " " + track.label);
    box.addEventListener("change", () => {
      if (box.checked) state.hidden.delete(track.id); else state.hidden.add(track.id);
      changed();
    });
    const go = button(item, track.label, () => { setTrack(track); canvas.focus(); });
    go.title = track.owner;
    make("span", show.count(track.count), item).className = "hint";
  }
};
