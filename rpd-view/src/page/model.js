// What there is, and questions about it. Times are ns since the first record.
let meta = null;
let tracks = [];
const trackOf = new Map();

// Names are kept: they are few, or each is wanted.
const names = new Map();
const chunkOf = (name) => {
  let low = 0, high = meta.names.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (meta.names[middle] <= name) low = middle; else high = middle;
  }
  return low;
};
const loadNames = (chunk) => {
  if (!names.has(chunk)) {
    const entry = {list: null, promise: null};
    names.set(chunk, entry);
    entry.promise = fetchTile(NAMES, 0, 0, chunk).then((data) => {
      entry.list = data ? decode[NAMES](data) : [];
      redraw();
      return entry.list;
    });
  }
  return names.get(chunk).promise;
};
const nameOf = (name) => {
  if (name < 0) return "";
  const chunk = chunkOf(name), list = names.get(chunk)?.list;
  if (!list) {
    loadNames(chunk).catch(() => {});
    return "\u2026";
  }
  return list[name - meta.names[chunk]] ?? "";
};
const nameFor = async (name) => {
  if (name < 0) return "";
  await loadNames(chunkOf(name));
  return nameOf(name);
};

// The index of a track: times, counts and sums of its tiles of records.
const SUM = 6;
const indices = new Map();
const loadIndex = (track) => {
  if (!indices.has(track.id)) {
    const entry = {value: null, promise: null};
    indices.set(track.id, entry);
    entry.promise = readIndex(track).then((value) => {
      entry.value = value;
      redraw();
      return value;
    });
  }
  return indices.get(track.id).promise;
};
const readIndex = async (track) => {
  const parts = await Promise.all(Array.from({length: track.indices}, (_, number) => fetchTile(INDEX, track.id, 0, number)));
  const whole = new Uint8Array(parts.reduce((all, part) => all + part.length, 0));
  parts.reduce((at, part) => { whole.set(part, at); return at + part.length; }, 0);
  const from = reader(whole), count = from.next();
  const index = {count, first: new Float64Array(count), end: new Float64Array(count), records: new Float64Array(count), busy: new Float64Array(count),
    weight: new Float64Array(count), until: new Float64Array(count), sums: []};
  let first = 0, until = 0;
  for (let at = 0; at < count; at += 1) {
    first += from.next();
    index.first[at] = first;
    index.end[at] = first + from.next();
    until = Math.max(until, index.end[at]);
    // No record of an earlier tile ends later.
    index.until[at] = until;
    index.records[at] = from.next();
    index.busy[at] = from.next();
    index.weight[at] = from.next();
    const sums = from.column(SUM * from.next());
    for (let sum = 0; sum < sums.length; sum += SUM) sums[sum] -= 1;
    index.sums.push(sums);
  }
  return index;
};
const indexNow = (track) => {
  const known = indices.get(track.id);
  if (!known && !failed) loadIndex(track).catch((error) => { failed = error.message; redraw(); });
  return known?.value;
};
// The first place whose value is at least `wanted`, of values in order.
const lowerBound = (values, wanted) => {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1; else high = middle;
  }
  return low;
};
// Whether the index has sums of the names of a tile: of many names it has none.
const hasSums = (index, number) => index.sums[number].length > 0;
const mayHave = (index, number, wanted) => !hasSums(index, number) || hasAny(index.sums[number], wanted);
// Numbers of the tiles that have records from `from` to `to`.
const tilesIn = (index, from, to) => {
  const list = [];
  for (let at = lowerBound(index.until, from); at < index.count && index.first[at] < to; at += 1) {
    if (index.end[at] >= from) list.push(at);
  }
  return list;
};

// What stats counts in a window: all that overlaps it, or touches its begin.
const isIn = (start, length, from, to) => start < Math.max(to, from + 1) && start + length >= from;
const newSum = () => ({count: 0, sum: 0, union: 0, min: Infinity, max: 0, bytes: 0, until: 0});
const addTo = (sum, start, end, from, to, weight) => {
  const low = Math.max(start, from), high = Math.min(end, to), length = Math.max(high - low, 0);
  sum.count += 1;
  sum.sum += length;
  sum.min = Math.min(sum.min, length);
  sum.max = Math.max(sum.max, length);
  sum.bytes += weight;
  sum.union += Math.max(high - Math.max(low, sum.until), 0);
  sum.until = Math.max(sum.until, high);
};
// Tiles of a track beyond which only those at the edges are read; the time of a name in which any of it ran is not known then.
const MOST_WHOLE = 48;
const sumTrack = async (track, from, to, mostWhole = MOST_WHOLE) => {
  const index = await loadIndex(track), list = tilesIn(index, from, to);
  const all = newSum(), byName = new Map();
  const of = (name) => {
    if (!byName.has(name)) byName.set(name, newSum());
    return byName.get(name);
  };
  let isPart = false;
  for (const at of list) {
    const isInside = index.first[at] >= from && index.end[at] <= to;
    if (isInside && list.length > mostWhole && hasSums(index, at)) {
      const sums = index.sums[at];
      for (let sum = 0; sum < sums.length; sum += SUM) {
        for (const into of [all, of(sums[sum])]) {
          into.count += sums[sum + 1];
          into.sum += sums[sum + 2];
          into.min = Math.min(into.min, sums[sum + 3]);
          into.max = Math.max(into.max, sums[sum + 4]);
          into.bytes += sums[sum + 5];
          if (into !== all) into.union = NaN;
        }
      }
      // Told for what began before it as well.
      all.union += index.busy[at];
      all.until = Math.max(all.until, index.end[at]);
      continue;
    }
    const records = await load(RECORDS, track.id, 0, at);
    isPart ||= (records?.count ?? 0) < index.records[at];
    for (let row = 0; row < (records?.count ?? 0); row += 1) {
      const start = records.start[row], length = records.length[row];
      if (!isIn(start, length, from, to)) continue;
      addTo(all, start, start + length, from, to, records.weight[row]);
      addTo(of(records.name[row]), start, start + length, from, to, records.weight[row]);
    }
  }
  return {track, all, byName, isPart};
};

// A record by its place.
const recordAt = async (track, number, row) => {
  const records = await load(RECORDS, track.id, 0, number);
  if (!records || row < 0 || row >= records.count) return null;
  return {track, number, row, start: records.start[row], length: records.length[row], name: records.name[row], lane: records.lane[row], weight: records.weight[row]};
};
// The records of a track that run at a time, the one that began first in front.
const MOST_LOOKED = 64;
const recordsDuring = async (track, at) => {
  const index = await loadIndex(track), found = [];
  for (const number of tilesIn(index, at, at + 1).slice(-MOST_LOOKED)) {
    const records = await load(RECORDS, track.id, 0, number);
    for (let row = 0; row < (records?.count ?? 0) && records.start[row] <= at; row += 1) {
      if (records.start[row] + records.length[row] > at) found.push(await recordAt(track, number, row));
    }
  }
  return found;
};
// The record after or before another one on its track; `wanted` chooses names.
const neighbour = async (record, step, wanted) => {
  const index = await loadIndex(record.track);
  let {number, row} = record;
  row += step;
  while (number >= 0 && number < index.count) {
    if (!wanted || mayHave(index, number, wanted)) {
      const records = await load(RECORDS, record.track.id, 0, number);
      const count = records?.count ?? 0;
      if (row === Infinity) row = count - 1;
      for (; row >= 0 && row < count; row += step) {
        if (!wanted || wanted.has(records.name[row])) return recordAt(record.track, number, row);
      }
    }
    number += step;
    row = step > 0 ? 0 : Infinity;
  }
  return null;
};
const hasAny = (sums, wanted) => {
  for (let at = 0; at < sums.length; at += SUM) if (wanted.has(sums[at])) return true;
  return false;
};
// The record of a track that begins last before a time or at it; else the first.
const recordNear = async (track, at) => {
  const index = await loadIndex(track);
  const number = Math.max(lowerBound(index.first, at + 1) - 1, 0);
  const records = await load(RECORDS, track.id, 0, number);
  if (!records?.count) return null;
  return recordAt(track, number, Math.max(lowerBound(records.start, at + 1) - 1, 0));
};

// Values of a record that no slice needs.
const OP = {id: 0, queue: 1, stream: 2, grid: 3, group: 6, lds: 9, scratch: 10, kernel: 11, launched: 12, before: 13, length: 14, thread: 15, name: 16, call: 17};
const detailsOf = async (record) => {
  if (record.track.kind === "memory") return [];
  const columns = await load(DETAILS, record.track.id, 0, record.number);
  return (columns ?? []).map((column) => column[record.row]);
};
const isOp = (track) => track.kind === "kernels" || track.kind === "copies";
const threadTrack = (kind, thread) => tracks.find((track) => track.kind === kind && track.of === thread);
// The call that requested an operation.
const launchOf = async (record) => {
  if (!isOp(record.track)) return null;
  const values = await detailsOf(record);
  if (!values[OP.launched]) return null;
  const track = threadTrack("calls", values[OP.thread]);
  const launch = {begin: record.start - values[OP.before], length: values[OP.length], thread: values[OP.thread], name: values[OP.name], call: values[OP.call],
    isGraph: values[OP.launched] === 2, record: null};
  if (!track) return launch;
  const near = await recordNear(track, launch.begin);
  // Several may begin at the same time.
  for (let at = near; at && at.start === launch.begin; at = await neighbour(at, -1)) {
    if ((await detailsOf(at))[0] === launch.call) launch.record = at;
  }
  return launch;
};
// The operations that a call requested: looked for from its begin on, as far as some tiles go.
const FOLLOWED = 3, MOST_FOLLOWED = 200;
const launchedBy = async (record) => {
  const [call] = await detailsOf(record), found = [];
  for (const track of tracks) {
    if (!isOp(track) || track.process !== record.track.process) continue;
    const index = await loadIndex(track);
    const from = Math.max(lowerBound(index.first, record.start + 1) - 1, 0);
    for (let number = from; number < Math.min(from + FOLLOWED, index.count); number += 1) {
      const [records, details] = await Promise.all([load(RECORDS, track.id, 0, number), load(DETAILS, track.id, 0, number)]);
      for (let row = 0; row < (records?.count ?? 0) && found.length < MOST_FOLLOWED; row += 1) {
        if (details[OP.launched][row] && details[OP.call][row] === call) found.push(await recordAt(track, number, row));
      }
    }
  }
  return found.sort((a, b) => a.start - b.start);
};
// The call of the launching thread that waits for an operation's end.
const WAITS = /Synchronize|Wait|^hipMemcpy[^A]*$/;
const waiterFor = async (record, launch) => {
  const track = launch && threadTrack("calls", launch.thread);
  if (!track) return null;
  for (const found of await recordsDuring(track, record.start + record.length)) {
    if (found.start > launch.begin && WAITS.test(await nameFor(found.name))) return found;
  }
  return null;
};
// The markers around a time on a thread, the outermost first.
const markersAround = async (thread, at) => {
  const track = threadTrack("markers", thread);
  const around = track ? await recordsDuring(track, at) : [];
  return Promise.all(around.filter((record) => record.length > 0).map((record) => nameFor(record.name)));
};

// Search: names that have a text in them, and how many records have such a name.
const search = async (text) => {
  const wanted = new Set(), lower = text.toLowerCase();
  const lists = await Promise.all(meta.names.map((_, chunk) => loadNames(chunk)));
  lists.forEach((list, chunk) => list.forEach((name, at) => {
    if (name.toLowerCase().includes(lower)) wanted.add(meta.names[chunk] + at);
  }));
  let count = 0;
  for (const track of tracks) {
    const index = await loadIndex(track);
    for (let number = 0; number < index.count && wanted.size; number += 1) {
      const sums = index.sums[number];
      for (let at = 0; at < sums.length; at += SUM) if (wanted.has(sums[at])) count += sums[at + 1];
      if (!hasSums(index, number)) {
        const records = await load(RECORDS, track.id, 0, number);
        for (const name of records?.name ?? []) count += wanted.has(name);
      }
    }
  }
  return {text, wanted, count};
};
// Whether one record comes before another one: by begin, then by track.
const order = (a, b) => a.start - b.start || a.track.place - b.track.place || a.number - b.number || a.row - b.row;
// The hit behind or before a record, or the first or last of all without one.
const nextHit = async (found, from, step) => {
  let best = null;
  for (const track of tracks) {
    // From a record that is not yet behind the place.
    const near = await recordNear(track, step < 0 ? from?.start ?? Infinity : (from?.start ?? 0) - 1);
    if (!near) continue;
    let hit = await neighbour({...near, row: near.row - step}, step, found.wanted);
    while (hit && from && order(hit, from) * step <= 0) hit = await neighbour(hit, step, found.wanted);
    if (hit && (!best || order(hit, best) * step < 0)) best = hit;
  }
  return best;
};
