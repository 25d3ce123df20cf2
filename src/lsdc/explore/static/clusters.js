// All clusters side by side: a card each, with a name to type, and what can be done with it.
import { h, count, percent, dot } from "./dom.js";
import { store, edit, called } from "./store.js";
import { onlyNames, picture } from "./pictures.js";
import { mergeDialog } from "./dialogs.js";

export function nameField(cluster) {
  const input = h("input", { placeholder: "Name this cluster", maxlength: 100, "aria-label": `Name of cluster ${cluster}`, spellcheck: "false" });
  const before = () => store.state.clusters.find((one) => one.cluster === cluster)?.name || "";
  input.value = before();
  input.addEventListener("change", () => input.value.trim() !== before() && edit({ do: "name", cluster, name: input.value }));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") input.blur();
    if (event.key === "Escape") { input.value = before(); input.blur(); }
  });
  return input;
}

export async function split(cluster) {
  const before = new Set(store.state.clusters.map((one) => one.cluster));
  if (!(await edit({ do: "split", cluster }, `Split ${called(cluster)} in two.`))) return null;
  return store.state.clusters.find((one) => !before.has(one.cluster))?.cluster ?? null;
}

function montage(about) {
  const link = `#/cluster/${about.cluster}`;
  const label = `Open ${called(about.cluster)}`;
  if (!about.size) return h("p", { class: "empty" }, "No samples");
  if (store.state.kind === "texts") {
    return h("a", { class: "montage words", href: link, "aria-label": label }, about.typical.slice(0, 4).map((s) => h("p", {}, s.text || "(empty)")));
  }
  if (onlyNames()) {
    return h("a", { class: "montage names", href: link, "aria-label": label }, about.typical.map((s) => h("p", {}, String(s.id))));
  }
  return h("a", { class: "montage", href: link, "aria-label": label }, about.typical.map((s) => picture(s)));
}

function card(about) {
  const { cluster } = about;
  const input = nameField(cluster);
  const place = h("div", {}, montage(about));
  const facts = h("p", { class: "soft small" });
  const splitting = h("button", { onclick: () => split(cluster) }, "Split");
  const element = h("article", { class: "card", "aria-label": called(cluster), "data-cluster": cluster },
    place,
    h("div", { class: "named" }, dot(cluster), input),
    facts,
    h("div", { class: "actions" },
      h("a", { class: "button", href: `#/cluster/${cluster}` }, "Open"),
      h("button", { onclick: () => mergeDialog(cluster) }, "Merge…"),
      splitting));
  let shown = null;
  const update = (now) => {
    const key = JSON.stringify([store.state.kind, store.state.data.is, now.typical.map((s) => s.i)]);
    if (shown !== null && shown !== key) place.replaceChildren(montage(now));
    shown = key;
    if (document.activeElement !== input) input.value = now.name;
    facts.textContent = `Cluster ${cluster} · ${count(now.size, "sample")}` + (now.size ? ` · ${percent(now.confidence)} sure` : "");
    splitting.disabled = now.size < 2 || store.state.map.is !== "ready";
    splitting.title = store.state.map.is === "ready" ? "Cut it in two where its samples differ most" : store.state.map.why || "Ready in a moment";
    element.setAttribute("aria-label", called(cluster));
  };
  update(about);
  return { element, update };
}

export function clustersView(view) {
  const known = new Map();
  const cards = h("div", { class: "cards" });
  const outliers = h("article", { class: "card", "aria-label": "Outliers" });
  view.replaceChildren(
    h("p", { class: "lead" }, "Give each cluster a name. Two that show the same? Merge them. A mixed one? Split it, or open it and move samples. Then export the labels."),
    cards);
  const draw = () => {
    const { clusters } = store.state;
    const alive = new Set(clusters.map((one) => one.cluster));
    for (const [cluster, { element }] of known) if (!alive.has(cluster)) { element.remove(); known.delete(cluster); }
    clusters.forEach((about, place) => {
      if (!known.has(about.cluster)) known.set(about.cluster, card(about));
      const { element, update } = known.get(about.cluster);
      update(about);
      if (cards.children[place] !== element) cards.insertBefore(element, cards.children[place] || null);
    });
    if (store.state.outliers) {
      outliers.replaceChildren(h("h3", {}, "Outliers"), h("p", { class: "soft small" }, `${count(store.state.outliers, "sample")} in no cluster`),
        h("div", { class: "actions" }, h("a", { class: "button", href: "#/cluster/-1" }, "Open")));
      cards.append(outliers);
    } else outliers.remove();
  };
  draw();
  return { update: draw };
}
