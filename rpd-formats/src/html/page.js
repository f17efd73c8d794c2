const data = JSON.parse(document.getElementById("data").textContent);

// Head.
byId("program").textContent = data.program;
byId("about").textContent = data.about;
for (const note of data.notes) {
  make("li", note, byId("notes"));
  byId("notes").hidden = false;
}
byId("cards").hidden = data.cards.length === 0;
for (const [label, value, unit] of data.cards) {
  const card = make("div", undefined, byId("cards"));
  make("b", show[unit](value), card);
  make("span", label, card);
}

// Tables.
const PAGE = 100;
const isText = (unit) => unit === "text" || unit === "short";
// A link to a part of the page, unless that is empty.
const jumpTo = (title, id) => {
  if (!byId(id).hasChildNodes()) return;
  make("a", title, byId("jump")).href = "#" + id;
};
const addTable = (table) => {
  const section = make("section", undefined, byId("tables"));
  section.id = table.id;
  const bar = make("div", undefined, section);
  bar.className = "bar";
  make("h2", table.title, bar);
  jumpTo(table.title, table.id);
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
  // Hues other than that of issued ones.
  return reason === "issued" ? "#2e9e5b" : "hsl(" + (190 + place * 61 % 270) % 360 + " 65% 55%)";
};
const percent = (part, whole) => (100 * part / Math.max(whole, 1)).toFixed(1);
// A bar of what the issue logic did.
const addReasons = (tally, parent) => {
  const bar = make("div", undefined, parent);
  bar.className = "stack";
  const parts = [["issued", tally.issued], ...tally.stalls].filter((part) => part[1] > 0);
  for (const [reason, samples] of parts) {
    const part = make("span", undefined, bar);
    part.style.width = percent(samples, tally.samples) + "%";
    part.style.background = reasonColour(reason);
  }
  bar.title = parts.map(([reason, samples]) => reason + " " + percent(samples, tally.samples) + " %").join("\n");
};
const addListing = (listing) => {
  const section = make("section", undefined, byId("code"));
  make("h2", "Code of " + listing.kernel, section);
  const where = listing.function === listing.kernel ? "" : " in " + listing.function;
  make("p", digits(listing.samples) + " of " + digits(listing.all) + " " + listing.measure + where + ". Shares are of these; the bar shows what the issue logic did.", section).className = "hint";
  const scroll = make("div", undefined, section);
  scroll.className = "scroll listing";
  const table = make("table", undefined, scroll);
  const head = make("tr", undefined, make("thead", undefined, table));
  // Columns for which nothing was recorded are left out: host trap samples have no stalls, traces no lanes.
  const stalls = listing.rows.some((row) => row.tally?.stalls), lanes = listing.rows.some((row) => row.tally?.lanes !== undefined);
  const columns = [["Line", ""], ["Source", "text"], [listing.measure[0].toUpperCase() + listing.measure.slice(1), ""], ["Share %", ""]];
  if (stalls) columns.push(["Issue", "text"]);
  if (lanes) columns.push(["Lanes", ""]);
  // Last: texts may be wider than the page.
  columns.push(["Offset", ""], ["Instruction", "text"]);
  for (const [name, kind] of columns) make("th", name, head).className = kind;
  const body = make("tbody", undefined, table);
  const most = Math.max(1, ...listing.rows.map((row) => row.tally?.samples ?? 0));
  for (const row of listing.rows) {
    const line = make("tr", undefined, body);
    const number = make("td", row.line || "", line);
    number.title = row.places ?? "";
    const source = make("td", row.source ?? "", line);
    source.className = "text code source";
    source.title = (row.source ? row.source.trim() + "\n" : "") + (row.places ?? "");
    const tally = row.tally;
    make("td", tally ? digits(tally.samples) : "", line);
    const share = make("td", tally ? percent(tally.samples, listing.samples) + (tally.error === undefined ? "" : " ± " + tally.error.toFixed(1)) : "", line);
    if (tally) {
      share.className = "heat";
      share.style.setProperty("--heat", Math.round(100 * tally.samples / most) + "%");
    }
    if (stalls) {
      const issue = make("td", undefined, line);
      issue.className = "text";
      if (tally?.stalls) addReasons(tally, issue);
    }
    if (lanes) make("td", tally?.lanes === undefined ? "" : tally.lanes.toFixed(1), line);
    make("td", "0x" + row.offset.toString(16), line);
    make("td", row.text, line).className = "text code";
  }
  if (!stalls) return;
  const legend = make("p", undefined, section);
  legend.className = "hint legend";
  const tallies = listing.rows.map((row) => row.tally).filter((tally) => tally?.stalls);
  const occurs = (reason) => tallies.some((tally) => reason === "issued" ? tally.issued > 0 : tally.stalls.some((stall) => stall[0] === reason && stall[1] > 0));
  for (const reason of REASONS.filter(occurs)) {
    const mark = make("span", undefined, legend);
    mark.className = "mark";
    mark.style.background = reasonColour(reason);
    make("span", reason + " ", legend);
  }
};
data.code.forEach(addListing);
