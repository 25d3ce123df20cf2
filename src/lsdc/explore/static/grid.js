// Samples of a cluster, or those a search finds: page after page as one scrolls, to select and move.
import { h, count, percent, dot } from "./dom.js";
import { store, askJson, called, select, sentence } from "./store.js";
import { face, onlyNames } from "./pictures.js";
import { nameField, split } from "./clusters.js";
import { mergeDialog, sampleDialog } from "./dialogs.js";

const PAGE = 60;
const SURE = { all: ["any confidence", 0, 1], low: ["below 50%", 0, 0.5], doubt: ["below 90%", 0, 0.9], sure: ["above 90%", 0.9, 1], most: ["above 99%", 0.99, 1] };

function tile(sample, inCluster) {
  const chosen = store.selected.has(sample.i);
  const caption = !inCluster ? [dot(sample.cluster), " ", called(sample.cluster)] : onlyNames() ? "" : String(sample.id);
  return h("div", { class: "tile", role: "option", tabindex: "-1", "aria-selected": String(chosen), "data-i": sample.i, title: String(sample.id), "aria-label": `${sample.id}, ${percent(sample.confidence)} sure` },
    face(sample),
    h("button", { class: "look", tabindex: "-1", "aria-label": `Look at ${sample.id}`, title: "Look closer (Enter)" }, "⤢"),
    h("div", { class: "caption" }, h("span", {}, caption), h("span", {}, percent(sample.confidence))));
}

function keys(grid) {
  let last = null;
  const tiles = () => [...grid.children];
  const flip = (element, range) => {
    const all = tiles();
    const to = all.indexOf(element);
    const from = range && last ? all.indexOf(last) : to;
    const on = range ? true : !store.selected.has(Number(element.dataset.i));
    select(all.slice(Math.min(from, to), Math.max(from, to) + 1).map((one) => Number(one.dataset.i)), on);
    last = element;
  };
  grid.addEventListener("click", (event) => {
    const element = event.target.closest(".tile");
    if (!element) return;
    if (event.target.closest(".look")) sampleDialog(Number(element.dataset.i));
    else flip(element, event.shiftKey);
    focus(element);
  });
  grid.addEventListener("dblclick", (event) => {
    const element = event.target.closest(".tile");
    if (element) sampleDialog(Number(element.dataset.i));
  });
  const focus = (element) => {
    if (!element) return;
    tiles().forEach((one) => { one.tabIndex = -1; });
    element.tabIndex = 0;
    element.focus();
  };
  grid.addEventListener("keydown", (event) => {
    const element = event.target.closest(".tile");
    if (!element || event.target.closest(".look")) return;
    const all = tiles();
    const place = all.indexOf(element);
    const across = all.filter((one) => one.offsetTop === all[0].offsetTop).length;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across }[event.key];
    if (step) focus(all[Math.max(0, Math.min(all.length - 1, place + step))]);
    else if (event.key === " ") flip(element, event.shiftKey);
    else if (event.key === "Enter") sampleDialog(Number(element.dataset.i));
    else if (event.key === "a" && (event.ctrlKey || event.metaKey)) select(all.map((one) => Number(one.dataset.i)));
    else return;
    event.preventDefault();
  });
}

function clusterHead(cluster, after) {
  if (cluster < 0) return [h("h2", {}, "Outliers"), after];
  const there = store.state.clusters.some((one) => one.cluster === cluster);
  if (!there) return [h("h2", {}, `Cluster ${cluster} is no longer there`)];
  const cut = async () => { const other = await split(cluster); if (other !== null) location.hash = `#/cluster/${other}`; };
  return [h("div", { class: "named" }, dot(cluster), nameField(cluster)), after,
    h("button", { onclick: () => mergeDialog(cluster) }, "Merge…"),
    h("button", { onclick: cut, disabled: store.state.map.is !== "ready", title: store.state.map.why }, "Split")];
}

export function gridView(view, { cluster = null, q = "" }) {
  const how = { order: "typical", sure: "all" };
  let total = 0, asked = 0, busy = false;
  const total_ = h("span", { class: "soft" });
  const head = h("div", { class: "head" });
  const grid = h("div", { class: store.state.kind === "texts" ? "grid words" : onlyNames() ? "grid names" : "grid", role: "listbox", "aria-multiselectable": "true", "aria-label": "Samples" });
  const end = h("p", { class: "more", role: "status" }, "…");
  const choose = (name, options) => h("select", { "aria-label": name, onchange: (event) => { how[name] = event.target.value; reload(0); } },
    Object.entries(options).map(([value, label]) => h("option", { value }, label)));
  view.replaceChildren(h("p", {}, h("a", { href: "#/" }, "← All clusters")), head,
    h("div", { class: "filters" },
      h("label", {}, "Show", choose("order", { typical: "most typical first", doubtful: "most doubtful first" })),
      h("label", {}, "Confidence", choose("sure", Object.fromEntries(Object.entries(SURE).map(([key, [label]]) => [key, label])))),
      h("span", {}, "Click samples to select them, ⤢ to look closer.")),
    grid, end);
  keys(grid);

  const drawHead = () => {
    if (head.contains(document.activeElement) && document.activeElement.tagName === "INPUT") return;
    head.replaceChildren(...(cluster === null ? [h("h2", {}, `Search: ${q}`), total_] : clusterHead(cluster, total_)));
  };
  const query = (offset, limit) => {
    const [, low, high] = SURE[how.sure];
    const words = new URLSearchParams({ q, order: how.order, low, high, offset, limit });
    if (cluster !== null) words.set("cluster", cluster);
    return askJson(`/api/samples?${words}`);
  };
  function add(page) {
    total = page.total;
    grid.append(...page.items.map((sample) => tile(sample, cluster !== null)));
    if (grid.firstChild && !grid.querySelector("[tabindex='0']")) grid.firstChild.tabIndex = 0;
    total_.textContent = count(total, "sample");
    const none = q ? "Nothing found. Try a part of a file name, or another word." : "No samples here.";
    end.textContent = !total ? none : grid.children.length < total ? "…" : "";
  }
  async function more(limit = PAGE) {
    if (busy) return;
    busy = true;
    const mine = asked;
    let again = false;
    try {
      const page = await query(grid.children.length, limit);
      again = mine !== asked; // meanwhile something else was asked for
      if (!again) {
        add(page);
        again = seen && grid.children.length < total;
      }
    } catch (error) {
      end.textContent = sentence(error.message);
    }
    busy = false;
    if (again) await more();
  }
  async function reload(keep) {
    asked += 1;
    const top = scrollY;
    grid.replaceChildren();
    await more(Math.min(500, Math.max(PAGE, keep)));
    if (keep) scrollTo(0, top);
  }
  let seen = false;
  const watcher = new IntersectionObserver(([entry]) => {
    seen = entry.isIntersecting;
    if (seen && grid.children.length && grid.children.length < total) more();
  }, { rootMargin: "600px" });
  watcher.observe(end);
  drawHead();
  reload(0);
  return {
    update: (what) => {
      if (what === "selection") {
        for (const one of grid.children) one.setAttribute("aria-selected", String(store.selected.has(Number(one.dataset.i))));
        return;
      }
      drawHead();
      reload(grid.children.length);
    },
    end: () => watcher.disconnect(),
  };
}
