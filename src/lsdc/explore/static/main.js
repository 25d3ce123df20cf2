// The frame: which view is shown, what is selected, undo and redo, and what is said about the run.
import { h, byId, count } from "./dom.js";
import { store, refresh, edit, exportLabels, clearSelection } from "./store.js";
import { clustersView } from "./clusters.js";
import { gridView } from "./grid.js";
import { mapView } from "./map.js";
import { moveDialog, markOutliers } from "./dialogs.js";

const view = byId("view");
let shown = { update() {}, end() {} };

function route() {
  if (!store.state) return;
  shown.end?.();
  const [, kind, rest = ""] = location.hash.split("/");
  const mapped = kind === "map";
  byId("to-map").setAttribute("aria-current", mapped ? "page" : "false");
  byId("to-clusters").setAttribute("aria-current", mapped ? "false" : "page");
  byId("search").firstElementChild.value = kind === "search" ? decoded(rest) : "";
  if (mapped) shown = mapView(view);
  else if (kind === "cluster" && /^-?\d+$/.test(rest)) shown = gridView(view, { cluster: Number(rest) });
  else if (kind === "search" && rest) shown = gridView(view, { q: decoded(rest) });
  else shown = clustersView(view);
  scrollTo(0, 0);
}
function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function drawFrame() {
  const { state } = store;
  const named = state.clusters.filter((one) => one.name).length;
  byId("title").textContent = state.title;
  document.title = `${state.title} · lsdc explore`;
  byId("facts").textContent = `${count(state.n, "sample")} · ${count(state.clusters.length, "cluster")}` + (named ? `, ${named} named` : "");
  for (const name of ["undo", "redo"]) {
    byId(name).disabled = !state[name];
    byId(name).title = state[name] ? `${name === "undo" ? "Undo" : "Redo"}: ${state[name]}` : `Nothing to ${name}`;
  }
  const missing = state.data.is === "missing";
  byId("notice").hidden = !missing;
  byId("notice").textContent = missing ? `${state.data.why}. Pictures and texts are left out; names, labels and changes work.` : "";
}

function drawSelection() {
  const n = store.selected.size;
  const bar = byId("selection");
  bar.hidden = !n;
  if (!n) return;
  bar.replaceChildren(h("b", {}, `${n.toLocaleString("en")} selected`),
    h("button", { class: "primary", onclick: moveDialog }, "Move to…"),
    h("button", { onclick: markOutliers }, "Mark as outliers"),
    h("button", { class: "plain", onclick: clearSelection }, "Clear"));
}

store.listeners.add((what) => {
  if (what === "selection") drawSelection();
  else drawFrame();
  shown.update?.(what);
});

byId("undo").addEventListener("click", () => edit({ do: "undo" }));
byId("redo").addEventListener("click", () => edit({ do: "redo" }));
byId("export").addEventListener("click", exportLabels);
byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const q = byId("search").firstElementChild.value.trim();
  location.hash = q ? `#/search/${encodeURIComponent(q)}` : "#/";
});
addEventListener("hashchange", route);
addEventListener("focus", refresh);
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key.toLowerCase() === "z" && !typing) {
    event.preventDefault();
    if (store.state[event.shiftKey ? "redo" : "undo"]) edit({ do: event.shiftKey ? "redo" : "undo" });
  } else if (event.key === "/" && !typing && !byId("dialog").open) {
    event.preventDefault();
    byId("search").firstElementChild.focus();
  } else if (event.key === "Escape" && !typing && !byId("dialog").open && store.selected.size) clearSelection();
});

async function watch() {
  await refresh();
  const working = store.state && [store.state.data, store.state.map].some((one) => one.is === "working");
  setTimeout(watch, working ? 1000 : 15000);
}

if (new URLSearchParams(location.search).has("token")) history.replaceState(null, "", `/${location.hash}`);
await watch();
route();
