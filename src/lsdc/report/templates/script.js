"use strict";
(() => {
  const byId = (id) => document.getElementById(id);

  // ---- an image, larger ----
  const dialog = byId("large");
  const smooth = (image) => image.classList.toggle("smooth", image.naturalWidth > 64);
  for (const image of document.querySelectorAll(".image img")) {
    if (image.complete) smooth(image);
    else image.addEventListener("load", () => smooth(image));
  }
  for (const button of document.querySelectorAll("button.image")) {
    button.addEventListener("click", () => {
      const image = button.querySelector("img"), large = byId("large-image");
      large.src = image.src;
      large.alt = image.alt;
      large.className = image.className;
      byId("large-text").textContent = image.alt;
      dialog.showModal();
    });
  }
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

  // ---- the map ----
  const source = byId("points");
  if (!source) return;
  const points = JSON.parse(source.textContent);
  const plane = byId("plane"), tip = byId("tip"), small = byId("tip-image"), sheet = byId("sheet");
  const count = points.x.length, dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null, doubtOnly = false, active = -1, width = 0, height = 0;

  const colour = (cluster) => {
    const [hue, shade] = points.colours[cluster];
    return `oklch(${(dark.matches ? 0.72 : 0.6) + 0.08 * shade} 0.15 ${hue})`;
  };
  const isSure = (i) => points.confidence[i] > 0.9;
  const isShown = (i) => (chosen === null || points.cluster[i] === chosen) && !(doubtOnly && isSure(i));
  const place = (i) => [points.x[i] / 1000 * width, points.y[i] / 1000 * height];

  const middle = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  const places = points.names.map((name, cluster) => {
    const mine = [...Array(count).keys()].filter((i) => points.cluster[i] === cluster);
    return mine.length ? [middle(mine.map((i) => points.x[i])), middle(mine.map((i) => points.y[i]))] : null;
  });

  function dot(context, i, radius) {
    const [x, y] = place(i);
    context.beginPath();
    context.arc(x, y, radius, 0, 7);
    if (isSure(i)) {
      context.fillStyle = colour(points.cluster[i]);
      context.fill();
    } else {
      context.strokeStyle = colour(points.cluster[i]);
      context.lineWidth = 1.3;
      context.stroke();
    }
  }

  function draw() {
    const scale = window.devicePixelRatio || 1, context = plane.getContext("2d");
    width = plane.clientWidth;
    height = plane.clientHeight;
    plane.width = width * scale;
    plane.height = height * scale;
    context.scale(scale, scale);
    const radius = Math.max(1.8, Math.min(3.6, 130 / Math.sqrt(count))) * (width < 500 ? 0.75 : 1);
    context.globalAlpha = 0.1;
    for (let i = 0; i < count; i++) if (!isShown(i)) dot(context, i, radius);
    context.globalAlpha = 0.8;
    for (let i = 0; i < count; i++) if (isShown(i)) dot(context, i, radius);
    context.globalAlpha = 1;
    const style = getComputedStyle(document.body);
    context.font = "600 13px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineWidth = 4;
    context.lineJoin = "round";
    if (points.names.length <= 60) {
      places.forEach((at, cluster) => {
        if (!at || (chosen !== null && chosen !== cluster)) return;
        const x = at[0] / 1000 * width, y = at[1] / 1000 * height;
        context.strokeStyle = style.getPropertyValue("--paper");
        context.strokeText(cluster, x, y);
        context.fillStyle = style.color;
        context.fillText(cluster, x, y);
      });
    }
    if (active >= 0) {
      context.lineWidth = 2;
      context.strokeStyle = style.color;
      context.beginPath();
      context.arc(...place(active), radius + 4, 0, 7);
      context.stroke();
    }
  }

  function show(i) {
    active = i;
    tip.hidden = i < 0;
    if (i >= 0) {
      const cluster = points.cluster[i];
      byId("tip-name").textContent = points.names[cluster];
      byId("tip-id").textContent = `${points.id[i]} · ${isSure(i) ? "confident" : "doubtful"}, ${points.confidence[i].toFixed(2)}`;
      byId("tip-text").textContent = points.text[i] || "";
      small.hidden = !sheet;
      if (sheet) {
        const { across, tile, width: w, height: h } = points.sheet, zoom = 96 / Math.max(w, h);
        const context = small.getContext("2d");
        context.clearRect(0, 0, 96, 96);
        context.imageSmoothingEnabled = false;
        const left = (96 - w * zoom) / 2, top = (96 - h * zoom) / 2;
        context.drawImage(sheet, i % across * tile, Math.floor(i / across) * tile, w, h, left, top, w * zoom, h * zoom);
      }
      const [x, y] = place(i), wide = tip.offsetWidth, tall = tip.offsetHeight;
      tip.style.left = `${Math.max(4, Math.min(width - wide - 4, x > width / 2 ? x - wide - 14 : x + 14))}px`;
      tip.style.top = `${Math.max(4, Math.min(height - tall - 4, y - tall / 2))}px`;
    }
    draw();
  }

  function nearest(x, y, reach) {
    let best = -1, least = reach * reach;
    for (let i = 0; i < count; i++) {
      if (!isShown(i)) continue;
      const [a, b] = place(i), square = (a - x) ** 2 + (b - y) ** 2;
      if (square < least) [best, least] = [i, square];
    }
    return best;
  }

  function open(i) {
    const card = byId(`cluster-${points.cluster[i]}`);
    if (!card) return;
    for (const other of document.querySelectorAll(".here")) other.classList.remove("here");
    card.classList.add("here");
    const fold = card.closest("details");
    if (fold) fold.open = true;
    card.scrollIntoView({ block: "start" });
    card.focus({ preventScroll: true });
  }

  const at = (event) => {
    const box = plane.getBoundingClientRect();
    return nearest(event.clientX - box.left, event.clientY - box.top, event.pointerType === "mouse" ? 16 : 26);
  };
  let before = -1, keyed = false;  // a mouse that rests while the page moves under it does not overrule the keyboard
  plane.addEventListener("pointermove", (event) => {
    if (keyed && !event.movementX && !event.movementY) return;
    keyed = false;
    const i = at(event);
    if (i !== active) show(i);
  });
  plane.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse" && !keyed) show(-1); });
  plane.addEventListener("pointerdown", (event) => {
    keyed = false;
    const i = at(event);
    before = event.pointerType === "mouse" ? i : active;
    show(i);
  });
  plane.addEventListener("click", () => { if (active >= 0 && active === before) open(active); });  // a finger looks first
  plane.addEventListener("blur", () => show(-1));

  const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  plane.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && active >= 0) open(active);
    if (event.key === "Escape") show(-1);
    const way = directions[event.key];
    if (!way) return;
    event.preventDefault();
    keyed = true;
    if (active < 0) return show(nearest(width / 2, height / 2, Infinity));
    const [x, y] = place(active);
    let best = -1, least = Infinity;
    for (let i = 0; i < count; i++) {  // the nearest within a quarter turn of that direction
      if (i === active || !isShown(i)) continue;
      const [a, b] = place(i), along = (a - x) * way[0] + (b - y) * way[1], aside = Math.abs((a - x) * way[1]) + Math.abs((b - y) * way[0]);
      if (along > 0 && aside <= along && along + aside < least) [best, least] = [i, along + aside];
    }
    if (best >= 0) show(best);
  });

  const buttons = [...document.querySelectorAll(".legend [data-cluster]")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const cluster = Number(button.dataset.cluster);
      chosen = chosen === cluster ? null : cluster;
      for (const other of buttons) other.setAttribute("aria-pressed", Number(other.dataset.cluster) === chosen);
      show(-1);
    });
  }
  byId("doubt").addEventListener("click", (event) => {
    doubtOnly = !doubtOnly;
    event.currentTarget.setAttribute("aria-pressed", doubtOnly);
    show(-1);
  });
  dark.addEventListener("change", draw);
  new ResizeObserver(draw).observe(plane);
  window.addEventListener("beforeprint", draw);
})();
