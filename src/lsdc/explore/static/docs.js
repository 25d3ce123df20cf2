// The API for people, drawn from /openapi.json: FastAPI's own page would fetch its script from elsewhere.
import { h, byId } from "./dom.js";

const named = (schema) => (schema?.$ref || "").split("/").pop();
const form = (schema) => {
  if (!schema) return "";
  if (schema.$ref) return named(schema);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const several = schema.anyOf || schema.oneOf;
  if (several) return several.map(form).join(" | ");
  return schema.type === "array" ? `[${form(schema.items)}, …]` : schema.type || "";
};
const row = (name, schema, about) => h("p", { class: "small" }, h("code", {}, name), " ", h("span", { class: "soft" }, [form(schema), about].filter(Boolean).join(" · ")));

const api = await (await fetch("/openapi.json")).json();
const view = byId("view");
view.append(h("p", { class: "lead" }, `${api.info.description} For scripts: send the token of the first address as “Authorization: Bearer TOKEN”. `, h("a", { href: "/openapi.json" }, "openapi.json")));
for (const [path, methods] of Object.entries(api.paths)) for (const [method, about] of Object.entries(methods)) {
  const body = about.requestBody?.content["application/json"]?.schema;
  view.append(h("article", { class: "card" }, h("h3", {}, h("code", {}, `${method.toUpperCase()} ${path}`)), h("p", {}, about.description || about.summary),
    (about.parameters || []).map((one) => row(one.name, one.schema, one.description)), body && row("body", body), h("br")));
}
view.append(h("h2", {}, "Bodies"));
for (const [name, schema] of Object.entries(api.components.schemas)) if (!/Error/.test(name)) {
  view.append(h("article", { class: "card" }, h("h3", {}, name), h("p", {}, schema.description || ""), Object.entries(schema.properties || {}).map(([field, one]) => row(field, one))));
}
