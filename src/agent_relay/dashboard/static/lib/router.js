// Where the page is, as `#/view/part/part?name=value`: a fragment works behind any path prefix, and is never sent anywhere.

import { computed, signal } from "./ui.js";

const FIRST_VIEW = "conversations";
const FORMER_NAMES = { attention: "inbox" }; // bookmarks of them still lead there

const address = signal(location.hash);
addEventListener("hashchange", () => { address.value = location.hash; });

/** { view: "conversations", path: ["pair", "Alice,Bob"], query: { select: "agent:Alice" } } */
export const route = computed(() => parse(address.value));

/** The view alone, and what is selected as "kind:id": whoever needs no more is not rendered again with every change of the address. */
export const viewId = computed(() => route.value.view);
export const selected = computed(() => route.value.query.select ?? null);

/** What the panel of details shows: null or { kind: "agent" | "message" | …, id }. */
export const selection = computed(() => {
  const chosen = selected.value;
  if (!chosen) return null;
  const at = chosen.indexOf(":");
  return { kind: chosen.slice(0, at), id: chosen.slice(at + 1) };
});

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view, ...rest] = path.split("/").map(decode);
  return { view: FORMER_NAMES[view] ?? (view || FIRST_VIEW), path: rest.filter(Boolean), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** The address of a place, for `href`: `link("conversations", ["channel", "#build"], { select: "agent:Bob" })`. */
export function link(view, path = [], query = {}) {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== ""));
  return `#/${[view, ...path].map(encodeURIComponent).join("/")}${search.size ? `?${search}` : ""}`;
}

/** Goes there; `replace` leaves no step in the history. */
export function go(hash, { replace = false } = {}) {
  if (hash === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", hash);
  address.value = hash;
}

/** Changes parts of the query and stays where it is; null takes one out. */
export function change(query, options) {
  const { view, path, query: now } = route.value;
  go(link(view, path, { ...now, ...query }), options);
}

/** Chooses what the panel of details shows; null closes it. */
export const select = (kind, id) => change({ select: kind === null ? null : `${kind}:${id}` });

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
