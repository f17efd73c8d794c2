// Where tiles come from: elements of this file, or the server that gave the page. What is in them is told in pyramid/tile.rs.
const META = 0, NAMES = 1, INDEX = 2, BINS = 3, RECORDS = 4, DETAILS = 5;
const file = byId("about") ? JSON.parse(byId("about").textContent) : null;
const token = new URLSearchParams(location.hash.slice(1)).get("k") ?? "";
const ask = async (path) => {
  const answer = await fetch(path, {headers: {"X-Rpd-Token": token}, cache: "no-store", referrerPolicy: "no-referrer"});
  if (answer.status === 204) return null;
  if (answer.status === 403) throw new Error("the address lacks the key that rpd view printed: open that address again");
  if (!answer.ok) throw new Error("the server answers " + answer.status);
  return new Uint8Array(await answer.arrayBuffer());
};
const inflate = async (stored) => {
  const stream = new Blob([stored]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};
const fetchTile = async (part, track, level, number) => {
  const place = part + "/" + track + "/" + level + "/" + number;
  let stored;
  if (file) {
    const element = byId("t/" + place);
    stored = element && bytes(element.textContent);
  } else {
    stored = await ask("/data/" + place);
  }
  return stored && inflate(stored);
};

// Numbers of seven bits a byte, the lowest first.
const reader = (data) => {
  let at = 0;
  const next = () => {
    let value = data[at] & 127, size = 128;
    while (data[at++] > 127) {
      value += (data[at] & 127) * size;
      size *= 128;
    }
    return value;
  };
  const column = (count) => {
    const values = new Float64Array(count);
    for (let row = 0; row < count; row += 1) values[row] = next();
    return values;
  };
  return {next, column};
};
const decode = {
  [NAMES]: (data) => JSON.parse(new TextDecoder().decode(data)),
  [RECORDS]: (data) => {
    const from = reader(data), count = from.next();
    const start = from.column(count), length = from.column(count);
    for (let row = 1; row < count; row += 1) start[row] += start[row - 1];
    const name = Int32Array.from(from.column(count), (value) => value - 1);
    return {count, start, length, name, lane: from.column(count), weight: from.column(count)};
  },
  [DETAILS]: (data) => {
    const from = reader(data), count = from.next(), width = from.next();
    return Array.from({length: width}, () => {
      const column = from.column(count);
      let before = 0;
      for (let row = 0; row < count; row += 1) {
        const value = column[row];
        before += value % 2 ? -(value + 1) / 2 : value / 2;
        column[row] = before;
      }
      return column;
    });
  },
  [BINS]: (data) => {
    const from = reader(data), count = from.next();
    const bins = {count, place: new Float64Array(count), records: new Float64Array(count), busy: new Float64Array(count), sum: new Float64Array(count),
      longest: new Float64Array(count), peak: new Float64Array(count), name: new Int32Array(count), time: new Float64Array(count)};
    let place = 0;
    for (let row = 0; row < count; row += 1) {
      place += from.next();
      bins.place[row] = place;
      bins.records[row] = from.next();
      bins.busy[row] = from.next();
      bins.sum[row] = from.next();
      bins.longest[row] = from.next();
      bins.peak[row] = from.next();
      bins.name[row] = from.next() - 1;
      bins.time[row] = from.next();
    }
    return bins;
  },
};

// Tiles that were used last.
const MOST_TILES = 700;
const cache = new Map();
let failed = null;
const load = (part, track, level, number) => {
  const key = part + "/" + track + "/" + level + "/" + number;
  const known = cache.get(key);
  if (known) return known.promise;
  const entry = {value: undefined, promise: null};
  entry.promise = fetchTile(part, track, level, number).then((data) => {
    entry.value = data ? decode[part](data) : null;
    redraw();
    return entry.value;
  }, (error) => {
    cache.delete(key);
    failed = error.message;
    redraw();
    throw error;
  });
  cache.set(key, entry);
  if (cache.size > MOST_TILES) {
    for (const [old, {value}] of cache) {
      if (value !== undefined) cache.delete(old);
      if (cache.size <= MOST_TILES * 0.8) break;
    }
  }
  return entry.promise;
};
// A tile if it is here; `undefined` while it is on its way, `null` when there is none.
const tile = (part, track, level, number) => {
  const key = part + "/" + track + "/" + level + "/" + number;
  const known = cache.get(key);
  if (!known) {
    if (!failed) load(part, track, level, number).catch(() => {});
    return undefined;
  }
  // The latest is last.
  cache.delete(key);
  cache.set(key, known);
  return known.value;
};
