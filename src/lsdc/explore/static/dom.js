// Elements from plain values. Strings become text nodes, never markup: names and texts come from anybody.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);
export const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
export const percent = (share) => (share === null ? "–" : `${Math.round(100 * share)}%`);
const COLOURS = ["#4c6ee0", "#e08a3c", "#2f9e77", "#d1495b", "#8e63ce", "#b39b20", "#2fa4c0", "#c964a8", "#7f8f3a", "#94664a", "#5c7391", "#e58fa3", "#57b04f", "#b0539e", "#c7752c", "#6f7fe8"];
export const colour = (cluster) => (cluster < 0 ? "#888" : COLOURS[cluster] || `hsl(${(cluster * 137.508) % 360} ${45 + (cluster % 3) * 12}% ${44 + (cluster % 4) * 7}%)`);
export const dot = (cluster) => h("span", { class: "dot", style: { background: colour(cluster) }, "aria-hidden": "true" });

export function toast(text, { wrong = false, action = null } = {}) {
  const button = action && h("button", { onclick: () => { element.remove(); action.run(); } }, action.label);
  const element = h("div", { class: wrong ? "toast wrong" : "toast" }, text, button);
  byId("toasts").append(element);
  while (byId("toasts").children.length > 3) byId("toasts").firstChild.remove();
  setTimeout(() => element.remove(), wrong ? 9000 : 5000);
}
