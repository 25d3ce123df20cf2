// All samples on a map: near ones are alike. Hover to see one, draw a line around some to select them.
import { h, colour, count, dot, percent } from "./dom.js";
import { store, ask, askJson, called, select, sentence } from "./store.js";
import { face } from "./pictures.js";
import { sampleDialog } from "./dialogs.js";

const CELLS = 80; // of a side, in which samples near the pointer are looked for

function inside(x, y, line) {
  let result = false;
  for (let a = 0, b = line.length - 1; a < line.length; b = a++) {
    const [ax, ay] = line[a], [bx, by] = line[b];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) result = !result;
  }
  return result;
}

function cellsOf(places) {
  const cells = new Map();
  for (let i = 0; i < places.length / 2; i++) {
    const key = Math.min(CELLS - 1, Math.floor((places[2 * i] / 65536) * CELLS)) * CELLS + Math.min(CELLS - 1, Math.floor((places[2 * i + 1] / 65536) * CELLS));
    cells.has(key) ? cells.get(key).push(i) : cells.set(key, [i]);
  }
  return cells;
}

export function mapView(view) {
  const canvas = h("canvas", { role: "img", "aria-label": "Map of all samples; the same samples can be selected in the clusters" });
  const over = h("canvas", { "aria-hidden": "true" });
  const tip = h("div", { class: "tip", hidden: true });
  const lasso = h("button", { "aria-pressed": "true", title: "Drag around samples to select them", onclick: () => mode("lasso") }, "Select");
  const pan = h("button", { "aria-pressed": "false", title: "Drag to move the map", onclick: () => mode("pan") }, "Move");
  const zoom = (by, label) => h("button", { "aria-label": label, title: label, onclick: () => { zoomAt(canvas.clientWidth / 2, canvas.clientHeight / 2, by); } }, by > 1 ? "+" : "−");
  const area = h("div", { class: "map" }, canvas, over, h("div", { class: "controls" }, lasso, pan, zoom(1.5, "Zoom in"), zoom(1 / 1.5, "Zoom out")), tip);
  const wait = h("p", { class: "empty" });
  const legend = h("div", { class: "legend", "aria-label": "Clusters" });
  view.replaceChildren(h("p", { class: "lead" }, "Similar samples lie together. Point at one to see it; draw around some to select them. Faint ones are doubtful."), area, legend);

  let places = null, cells = null, labels = null, sure = null, version = -1;
  let scale = 1, left = 0, top = 0, line = null, held = null, drawing = "lasso", ended = false, wanted = -1;
  let wide = 1, high = 1, mx = 0, my = 0; // of the map at scale 1, and its margins
  const at = (i) => [mx + left + (places[2 * i] / 65535) * wide * scale, my + top + (places[2 * i + 1] / 65535) * high * scale];
  const measure = () => {
    const [w, t] = [canvas.clientWidth - 40, canvas.clientHeight - 80]; // the buttons are above
    [wide, high] = [Math.min(w, 1.5 * t), Math.min(t, 1.5 * w)]; // it has no true proportions
    [mx, my] = [20 + (w - wide) / 2, 60 + (t - high) / 2];
  };
  const mode = (name) => {
    drawing = name;
    lasso.setAttribute("aria-pressed", String(name === "lasso"));
    pan.setAttribute("aria-pressed", String(name === "pan"));
  };

  function context(of) {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [Math.round(of.clientWidth * ratio), Math.round(of.clientHeight * ratio)];
    if (of.width !== width || of.height !== height) { of.width = width; of.height = height; }
    const drawn = of.getContext("2d");
    drawn.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawn.clearRect(0, 0, of.clientWidth, of.clientHeight);
    return drawn;
  }
  function draw() {
    if (!places || !labels) return;
    measure();
    const pen = context(canvas);
    const size = Math.max(1.5, Math.min(6, (340 / Math.sqrt(labels.length)) * 0.55 * scale ** 0.8));
    const round = labels.length < 20000; // circles cost more
    const { clientWidth: far, clientHeight: low } = canvas;
    const groups = new Map();
    for (let i = 0; i < labels.length; i++) {
      const key = labels[i] * 2 + (sure[i] > 229 ? 1 : 0);
      groups.has(key) ? groups.get(key).push(i) : groups.set(key, [i]);
    }
    for (const [key, rows] of groups) {
      pen.fillStyle = colour(Math.floor(key / 2));
      pen.globalAlpha = key % 2 ? 0.85 : 0.35;
      for (const i of rows) {
        const [x, y] = at(i);
        if (x < 0 || y < 0 || x > far || y > low) continue;
        if (round) { pen.beginPath(); pen.arc(x, y, size / 2, 0, 7); pen.fill(); } else pen.fillRect(x - size / 2, y - size / 2, size, size);
      }
    }
    pen.globalAlpha = 1;
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--ink");
    pen.lineWidth = 1.5;
    for (const i of store.selected) { const [x, y] = at(i); pen.strokeRect(x - size / 2 - 1, y - size / 2 - 1, size + 2, size + 2); }
    drawLine();
  }
  let framed = false;
  const later = () => { if (!framed) { framed = true; requestAnimationFrame(() => { framed = false; draw(); }); } };
  function drawLine() {
    const pen = context(over);
    if (!line || line.length < 2) return;
    pen.beginPath();
    line.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.closePath();
    pen.strokeStyle = pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    pen.lineWidth = 1.5;
    pen.stroke();
    pen.globalAlpha = 0.12;
    pen.fill();
  }
  function zoomAt(x, y, by) {
    const next = Math.max(1, Math.min(40, scale * by));
    left = x - mx - ((x - mx - left) * next) / scale;
    top = y - my - ((y - my - top) * next) / scale;
    scale = next;
    if (scale === 1) left = top = 0;
    later();
  }
  function near(x, y) {
    const u = ((x - mx - left) / (wide * scale)) * CELLS, v = ((y - my - top) / (high * scale)) * CELLS;
    let best = -1, least = 14 * 14;
    for (let a = Math.floor(u) - 1; a <= u + 1; a++) for (let b = Math.floor(v) - 1; b <= v + 1; b++) for (const i of cells.get(a * CELLS + b) || []) {
      const [px, py] = at(i), far = (px - x) ** 2 + (py - y) ** 2;
      if (far < least) [best, least] = [i, far];
    }
    return best;
  }
  async function hover(x, y) {
    const i = places && labels ? near(x, y) : -1;
    canvas.style.cursor = i < 0 ? "crosshair" : "pointer";
    if (i === wanted) return;
    wanted = i;
    tip.hidden = true;
    if (i < 0) return;
    const sample = await askJson(`/api/samples/${i}`).catch(() => null);
    if (!sample || wanted !== i || ended) return;
    const shown = store.state.kind === "texts" ? h("div", {}, (sample.text || "").slice(0, 160)) : store.state.kind === "images" ? face(sample) : null;
    tip.replaceChildren(...[shown, h("div", {}, dot(labels[i]), " ", called(labels[i])), h("div", { class: "soft small" }, `${sample.id} · ${percent(sample.confidence)} sure`)].filter(Boolean));
    tip.hidden = false;
    tip.style.left = `${Math.max(4, x + 16 + tip.offsetWidth > area.clientWidth ? x - tip.offsetWidth - 12 : x + 16)}px`;
    tip.style.top = `${Math.max(4, Math.min(area.clientHeight - tip.offsetHeight - 8, y + 10))}px`;
  }
  const spot = (event) => { const box = area.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  over.addEventListener("pointerdown", (event) => {
    over.setPointerCapture(event.pointerId);
    held = { from: spot(event), left, top, moved: false, pan: drawing === "pan" || event.shiftKey || event.button === 1 };
    line = held.pan ? null : [held.from];
  });
  over.addEventListener("pointermove", (event) => {
    const [x, y] = spot(event);
    if (!held) return hover(x, y);
    held.moved ||= Math.hypot(x - held.from[0], y - held.from[1]) > 4;
    tip.hidden = true;
    if (held.pan) { left = held.left + x - held.from[0]; top = held.top + y - held.from[1]; later(); } else { line.push([x, y]); drawLine(); }
  });
  const release = (event) => {
    if (!held) return;
    const [x, y] = spot(event);
    if (!held.moved) { const i = places && labels ? near(x, y) : -1; if (i >= 0) sampleDialog(i); }
    else if (line && places && labels) {
      const found = [];
      for (let i = 0; i < labels.length; i++) if (inside(...at(i), line)) found.push(i);
      if (found.length) select(found);
    }
    held = line = null;
    later();
  };
  over.addEventListener("pointerup", release);
  over.addEventListener("pointercancel", () => { held = line = null; later(); });
  over.addEventListener("pointerleave", () => { wanted = -1; tip.hidden = true; });
  over.addEventListener("wheel", (event) => { event.preventDefault(); zoomAt(...spot(event), Math.exp(-event.deltaY / 400)); }, { passive: false });
  const sized = new ResizeObserver(later);
  sized.observe(area);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", later);

  async function load() {
    const { map, clusters, outliers } = store.state;
    wait.textContent = map.is === "missing" ? `There is no map: ${map.why}.` : "The map is being drawn; this takes a while the first time. Meanwhile you can work in the clusters.";
    area.hidden = map.is !== "ready";
    if (map.is !== "ready") { area.before(wait); legend.replaceChildren(); return; }
    wait.remove();
    try {
      if (!places) { places = new Uint16Array(await (await ask("/api/map")).arrayBuffer()); cells = cellsOf(places); }
      if (version !== store.state.version) {
        const content = await (await ask("/api/labels")).arrayBuffer();
        version = new Int32Array(content, 0, 1)[0];
        labels = new Int32Array(content, 4, places.length / 2);
        sure = new Uint8Array(content, 4 + 2 * places.length);
      }
    } catch (error) {
      wait.textContent = sentence(error.message);
      area.before(wait);
      return;
    }
    const entry = (cluster, size) => h("a", { href: `#/cluster/${cluster}` }, dot(cluster), called(cluster), h("span", { class: "soft" }, count(size, "sample")));
    legend.replaceChildren(...clusters.filter((one) => one.size).map((one) => entry(one.cluster, one.size)), ...(outliers ? [entry(-1, outliers)] : []));
    later();
  }
  load();
  return { update: (what) => (what === "selection" ? later() : load()), end: () => { ended = true; sized.disconnect(); scheme.removeEventListener("change", later); } };
}
