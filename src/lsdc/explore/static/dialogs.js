// What is asked before something is done: where to, or merged with which; and a sample in full.
import { h, byId, count, percent, dot, toast } from "./dom.js";
import { store, askJson, edit, called, select, clearSelection, sentence } from "./store.js";
import { picture, face } from "./pictures.js";

const dialog = byId("dialog");
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

function open(title, ...content) {
  const close = h("button", { class: "close", "aria-label": "Close", onclick: () => dialog.close() }, "✕");
  dialog.replaceChildren(close, h("h2", { id: "dialog-title", tabindex: "-1", autofocus: true }, title), ...content);
  dialog.setAttribute("aria-labelledby", "dialog-title");
  if (!dialog.open) dialog.showModal();
  byId("dialog-title").focus();
  dialog.scrollTop = 0;
}

function choice(about, run) {
  const sample = about.typical[0];
  const image = sample && store.state.kind !== "texts" ? picture(sample) : null;
  const words = store.state.kind === "texts" && sample ? h("span", { class: "soft small" }, (sample.text || "").slice(0, 70)) : null;
  return h("button", { class: "choice", "data-cluster": about.cluster, onclick: () => { dialog.close(); run(); } },
    image, h("span", { class: "what" }, dot(about.cluster), " ", called(about.cluster), h("br"),
      h("span", { class: "soft small" }, count(about.size, "sample")), words && h("br"), words));
}

async function byNearness(cluster) {
  try {
    const { clusters } = await askJson(`/api/clusters/${cluster}/near`);
    return clusters;
  } catch {
    return [];
  }
}

export async function mergeDialog(cluster) {
  const near = await byNearness(cluster);
  const others = store.state.clusters.filter((one) => one.cluster !== cluster);
  others.sort((a, b) => near.indexOf(a.cluster) - near.indexOf(b.cluster));
  const name = called(cluster);
  const run = (into) => edit({ do: "merge", cluster, into }, `Merged ${name} into ${called(into)}.`);
  const hint = near.length ? "Choose the other one. The most similar come first." : "Choose the other one.";
  open(`Merge ${name} with …`, h("p", { class: "soft" }, others.length ? hint : "There is no other cluster."),
    h("div", { class: "choices" }, others.map((one) => choice(one, () => run(one.cluster)))));
}

export function moveDialog() {
  const samples = [...store.selected];
  const run = async (to) => {
    const where = to === null ? "a new cluster" : called(to);
    if (await edit({ do: "move", samples, to }, `Moved ${count(samples.length, "sample")} to ${where}.`)) clearSelection();
  };
  open(`Move ${count(samples.length, "sample")} to …`, h("div", { class: "choices" },
    h("button", { class: "choice", onclick: () => { dialog.close(); run(null); } }, h("span", { class: "what" }, "+ A new cluster")),
    store.state.clusters.map((one) => choice(one, () => run(one.cluster)))));
}

export async function markOutliers() {
  const samples = [...store.selected];
  if (await edit({ do: "outlier", samples }, `Marked ${count(samples.length, "sample")} as outlier${samples.length === 1 ? "" : "s"}.`)) clearSelection();
}

export async function sampleDialog(i) {
  try {
    show(i, ...(await Promise.all([askJson(`/api/samples/${i}`), askJson(`/api/samples/${i}/neighbours`)])));
  } catch (error) {
    toast(sentence(error.message), { wrong: true });
  }
}

function show(i, sample, near) {
  const fact = (name, value) => [h("dt", {}, name), h("dd", {}, value)];
  const there = sample.cluster;
  const where = h("a", { href: `#/cluster/${there}`, onclick: () => dialog.close() }, called(there));
  const whole = store.state.kind === "texts" ? h("div", { class: "text" }, sample.text || "(empty)")
    : store.state.kind === "images" ? picture(sample, "large") : null;
  const values = sample.values && fact("Values", sample.values.slice(0, 16).map((v) => Number(v.toPrecision(4))).join(", ") + (sample.values.length > 16 ? ", …" : ""));
  const choose = h("button", { onclick: () => { select([i], !store.selected.has(i)); dialog.close(); } }, store.selected.has(i) ? "Take out of the selection" : "Select this sample");
  open(String(sample.id), h("div", { class: "whole" }, whole,
    h("dl", {}, fact("Cluster", where), fact("Confidence", percent(sample.confidence)), values, h("dt"), h("dd", {}, choose))),
    h("h3", {}, "Most similar"),
    near.items.length ? h("div", { class: store.state.kind === "texts" ? "grid words" : "grid" }, near.items.map((one) =>
      h("button", { class: "tile", "aria-label": `Look at ${one.id}`, onclick: () => sampleDialog(one.i) }, face(one),
        h("div", { class: "caption" }, h("span", {}, dot(one.cluster), " ", called(one.cluster))))))
      : h("p", { class: "soft" }, near.message || "There are no others."));
}
