// A sample as a person sees it: a picture, a text, or its name.
import { h } from "./dom.js";
import { store } from "./store.js";

const TINY = 64; // pixels; smaller pictures keep their corners

export const onlyNames = () => store.state.kind === "ids" && store.state.data.is !== "working"; // nothing else to see

export function picture(sample, size = "small") {
  const blank = h("div", { class: "blank" }, store.state.data.is === "working" ? "" : String(sample.id));
  if (store.state.kind !== "images") return blank;
  const image = h("img", { src: `/api/samples/${sample.i}/image?size=${size}`, alt: String(sample.id), loading: "lazy", decoding: "async" });
  image.addEventListener("load", () => image.classList.toggle("tiny", image.naturalWidth < TINY));
  image.addEventListener("error", () => image.replaceWith(blank));
  return image;
}

export function face(sample) {
  if (store.state.kind === "texts") return h("div", { class: "words" }, sample.text || "(empty)");
  return picture(sample);
}
