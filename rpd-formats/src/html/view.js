// A canvas that shows a part of a length: dragging moves it, the wheel with Ctrl or Shift zooms, so do buttons and keys.

// `draw` paints the part from view.from to view.to; `read` tells what is at a place, as {text}, or null; `click` gets the same.
const makeView = ({canvas, tip, length, least, draw, read, click}) => {
  const view = {from: 0, to: Math.max(length, 1)};
  view.move = (start, span) => {
    view.from = Math.min(Math.max(start, 0), Math.max(length - span, 0));
    view.to = view.from + Math.max(span, 1);
    tip.hidden = true;
    draw();
  };
  view.zoom = (factor, around) => {
    const {from, to} = view, middle = around ?? (from + to) / 2;
    const span = Math.min(Math.max((to - from) * factor, least), length);
    view.move(middle - span * (middle - from) / (to - from), span);
  };
  // The canvas in pixels of the screen, and what a place on it is in the unit of the length.
  view.begin = (height) => {
    const width = canvas.parentElement.clientWidth, ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = height + "px";
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "top";
    return {context, width, perPixel: (view.to - view.from) / width};
  };
  // Grid lines at steps of 1, 2 or 5 times a power of ten.
  view.axis = ({context, width, perPixel}, height, format) => {
    const [faint, line] = styleOf("--faint", "--line");
    const smallest = Math.max(perPixel * 90, 1), power = 10 ** Math.floor(Math.log10(smallest));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= smallest);
    for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
      const x = (at - view.from) / perPixel;
      context.fillStyle = line;
      context.fillRect(x, 0, 1, height);
      context.fillStyle = faint;
      context.fillText(format(at, step), x + 3, 3);
    }
  };
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top, width: box.width};
  };
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    drag = {x: event.clientX, from: view.from};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && Math.abs(event.clientX - drag.x) <= 3) click?.(read(place(event)));
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointermove", (event) => {
    const spot = place(event);
    if (drag && Math.abs(event.clientX - drag.x) > 3) {
      const span = view.to - view.from;
      view.move(drag.from - (event.clientX - drag.x) / spot.width * span, span);
      return;
    }
    const found = read(spot);
    tip.hidden = !found;
    tip.textContent = found?.text ?? "";
    tip.style.top = spot.y + 16 + "px";
    tip.style.left = Math.max(Math.min(spot.x + 8, spot.width - tip.offsetWidth), 0) + "px";
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const spot = place(event);
    const turned = event.deltaY || event.deltaX;
    view.zoom(turned > 0 ? 1.25 : 0.8, view.from + spot.x / spot.width * (view.to - view.from));
  }, {passive: false});
  const step = (part) => view.move(view.from + (view.to - view.from) * part, view.to - view.from);
  view.actions = {
    in: () => view.zoom(0.5), out: () => view.zoom(2), all: () => view.move(0, length),
    left: () => step(-1 / 3), right: () => step(1 / 3),
  };
  const keys = {"+": "in", "-": "out", "0": "all", ArrowLeft: "left", ArrowRight: "right"};
  canvas.addEventListener("keydown", (event) => {
    if (keys[event.key]) { event.preventDefault(); view.actions[keys[event.key]](); }
  });
  new ResizeObserver(draw).observe(canvas.parentElement);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.addEventListener("beforeprint", draw);
  return view;
};
