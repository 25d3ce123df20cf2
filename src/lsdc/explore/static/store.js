// The state of the clusters as the server has it, and every way to change it.
import { toast } from "./dom.js";

export const store = { state: null, selected: new Set(), listeners: new Set() };

export const called = (cluster) => {
  if (cluster < 0) return "Outliers";
  return store.state.clusters.find((one) => one.cluster === cluster)?.name || `Cluster ${cluster}`;
};
export const tell = (what) => store.listeners.forEach((listener) => listener(what));

async function answer(response) {
  if (response.ok) return response;
  const type = response.headers.get("content-type") || "";
  const body = type.includes("json") ? await response.json() : { message: await response.text() };
  const message = body.message || (typeof body.detail === "string" ? body.detail : "the request was not understood");
  throw Object.assign(new Error(message), { status: response.status });
}

export async function ask(path) {
  try {
    return await answer(await fetch(path));
  } catch (error) {
    if (error instanceof TypeError) throw new Error("the explorer does not answer; was it closed? Start lsdc explore again");
    throw error;
  }
}
export const askJson = async (path) => (await ask(path)).json();

function take(state) {
  const before = store.state;
  store.state = state;
  const changed = !before || ["version", "kind"].some((key) => before[key] !== state[key]);
  const moved = changed || before.data.is !== state.data.is || before.map.is !== state.map.is;
  if (moved) tell(changed ? "state" : "status");
}

let quiet = false;
export async function refresh() {
  try {
    take(await askJson("/api/state"));
    quiet = false;
  } catch (error) {
    if (!quiet) toast(error.message, { wrong: true });
    quiet = true; // once is enough
  }
}

let last = Promise.resolve();
export function edit(change, said = null) { // one after another, each on the version that the one before has left
  last = last.then(() => made(change, said));
  return last;
}

async function made(change, said) {
  try {
    const body = JSON.stringify({ version: store.state.version, edit: change });
    const options = { method: "POST", headers: { "Content-Type": "application/json" }, body };
    take(await (await answer(await fetch("/api/edits", options))).json());
    document.querySelectorAll(".toast button").forEach((button) => button.parentElement.remove()); // no longer the last
    if (said) toast(said, { action: { label: "Undo", run: () => edit({ do: "undo" }) } });
    return true;
  } catch (error) {
    const lost = error instanceof TypeError;
    toast(lost ? "The change was not made: the explorer does not answer." : sentence(error.message), { wrong: true });
    if (!lost) await refresh();
    return false;
  }
}

export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

export async function exportLabels() {
  try {
    const { path } = await (await answer(await fetch("/api/export", { method: "POST", body: "" }))).json();
    toast(`Exported, and saved as ${path}`);
    const link = document.createElement("a");
    link.href = "/api/labels-edited.csv";
    link.download = "labels-edited.csv";
    link.click();
  } catch (error) {
    toast(sentence(error.message), { wrong: true });
  }
}

export function select(indices, on = true) {
  for (const i of indices) on ? store.selected.add(i) : store.selected.delete(i);
  tell("selection");
}
export function clearSelection() {
  store.selected.clear();
  tell("selection");
}
