"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const element = id => document.getElementById(id);
const HEIGHT = 18, NARROWEST = 0.3;
const HUES = [[18, 70], [210, 65], [130, 45], [0, 0]];

// Rows are [frame, parent] and for each kind of weight [now, before]; a parent comes before what is in it.
const nodes = data.nodes.map(([frame, parent, ...weights], index) =>
    ({ index, frame: frame === null ? null : data.frames[frame], parent, weights, now: 0, before: 0, inner: [], depth: 0 }));
for (const node of nodes) {
    if (node.parent !== null) {
        node.parent = nodes[node.parent];
        node.parent.inner.push(node);
        node.depth = node.parent.depth + 1;
    }
}
const root = nodes[0];
// What is gone since the profile from before keeps its place, too.
const width = node => data.difference ? Math.max(node.now, node.before) : node.now;
const widths = new Map();
let unit = "";
// Gives all frames their weights of a kind.
const weigh = kind => {
    unit = data.weights[kind].unit;
    for (let index = nodes.length - 1; index >= 0; index--) {
        const node = nodes[index];
        [node.now, node.before] = node.weights.slice(2 * kind);
        const sum = node.inner.reduce((sum, inner) => sum + widths.get(inner), 0);
        widths.set(node, Math.max(width(node), sum));
    }
    element("total").textContent = data.difference
        ? `${data.weights[kind].name}: ${amount(root.before)} before, ${amount(root.now)} now`
        : `${data.weights[kind].name}: ${amount(root.now)}`;
};

const name = node => node.frame ? node.frame[0] : "all";
const amount = value => {
    if (unit === "ns") {
        for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]]) {
            if (value >= size) return `${(value / size).toFixed(2)} ${unit}`;
        }
        return `${value} ns`;
    }
    if (unit === "B") {
        for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
            if (value >= size) return `${(value / size).toFixed(2)} ${unit}`;
        }
        return `${value} B`;
    }
    return value.toLocaleString("en");
};
const share = (part, whole) => whole ? `${(100 * part / whole).toFixed(2)} %` : "";

const describe = node => {
    const [, file, line] = node.frame || ["", "", 0];
    const place = file ? ` at ${file}${line ? `:${line}` : ""}` : "";
    let text = `${name(node)}${place}: ${amount(node.now)}, ${share(node.now, root.now)} of all`;
    if (data.difference) {
        const change = node.now - node.before;
        text += `; before ${amount(node.before)}, ${change >= 0 ? "+" : "-"}${amount(Math.abs(change))}`;
    }
    return text;
};

const hash = text => {
    let value = 0;
    for (let index = 0; index < text.length; index++) value = (value * 31 + text.charCodeAt(index)) | 0;
    return Math.abs(value);
};
const colour = node => {
    if (data.difference) {
        // Blue for less, red for more, white for as much as before.
        const change = (node.now - node.before) / Math.max(node.now, node.before, 1);
        const light = 92 - Math.abs(change) * 35;
        return `hsl(${change > 0 ? 8 : 215} ${Math.min(90, Math.abs(change) * 100)}% ${light}%)`;
    }
    const [hue, strength] = node.frame ? HUES[node.frame[3]] : [0, 0];
    return `hsl(${hue + hash(name(node)) % 24} ${strength}% ${66 + hash(name(node)) % 13}%)`;
};

let focus = root, wanted = "";
const matches = node => node.frame !== null && wanted !== ""
    && (node.frame[0].toLowerCase().includes(wanted) || node.frame[1].toLowerCase().includes(wanted));

const draw = () => {
    const graph = element("graph");
    const full = graph.clientWidth;
    const boxes = document.createDocumentFragment();
    const box = (node, left, size, isOuter) => {
        const div = document.createElement("div");
        div.style.left = `${left}px`;
        div.style.top = `${node.depth * HEIGHT}px`;
        div.style.width = `${size}px`;
        div.style.background = colour(node);
        div.textContent = size > 24 ? name(node) : "";
        div.dataset.node = node.index;
        div.title = describe(node);
        if (isOuter) div.classList.add("outer");
        if (matches(node)) div.classList.add("match");
        boxes.append(div);
    };
    for (let outer = focus.parent; outer; outer = outer.parent) box(outer, 0, full, true);
    const scale = full / Math.max(widths.get(focus), 1);
    const open = [[focus, 0]];
    while (open.length) {
        const [node, left] = open.pop();
        const size = widths.get(node) * scale;
        if (size < NARROWEST) continue;
        box(node, left, size, false);
        let at = left;
        for (const inner of node.inner) {
            open.push([inner, at]);
            at += widths.get(inner) * scale;
        }
    }
    graph.replaceChildren(boxes);
};

const search = () => {
    wanted = element("search").value.trim().toLowerCase();
    // A frame in one that matches counts no second time.
    let sum = 0, count = 0;
    const open = wanted ? [root] : [];
    while (open.length) {
        const node = open.pop();
        if (matches(node)) {
            sum += node.now;
            count++;
        } else {
            open.push(...node.inner);
        }
    }
    element("found").textContent = wanted ? `${count} found: ${amount(sum)}, ${share(sum, root.now)}` : "";
    draw();
};

const nodeOf = event => {
    const div = event.target.closest("[data-node]");
    return div ? nodes[div.dataset.node] : null;
};
element("graph").addEventListener("click", event => {
    const node = nodeOf(event);
    if (node) {
        focus = node;
        draw();
    }
});
element("graph").addEventListener("mouseover", event => {
    const node = nodeOf(event);
    if (node) element("detail").textContent = describe(node);
});
element("reset").addEventListener("click", () => {
    focus = root;
    element("search").value = "";
    search();
});
element("search").addEventListener("input", search);
window.addEventListener("resize", draw);
element("title").textContent = data.title;
const choice = element("weight");
choice.replaceChildren(...data.weights.map((weight, kind) => new Option(weight.name, kind)));
choice.parentElement.hidden = data.weights.length < 2;
choice.addEventListener("change", () => {
    weigh(Number(choice.value));
    // What is enlarged may have no weight of this kind, and then nothing would be seen.
    if (!widths.get(focus)) focus = root;
    search();
});
weigh(0);
draw();
})();
