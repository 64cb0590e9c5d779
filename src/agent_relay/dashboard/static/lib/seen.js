// How far each conversation was read: marks of this person, the same in all their browsers.

import { mark, markOf, marks } from "./marks.js";
import { status } from "./store.js";

/** Everything before it counts as read: it is set when a person first opens the page, and by "mark all as read". */
const BASE = "seen:";

/** The name of a conversation's mark. A pair is the same whoever of the two is named first. */
export function seenName(type, key) {
  const names = type === "pair" ? key.split(",").sort((one, other) => (one.toLowerCase() < other.toLowerCase() ? -1 : 1)) : [key];
  return `${BASE}${type}:${names.join(",")}`;
}

/** The moment of the last message that was seen there; null while it is not known. */
export function seenAt(type, key) {
  if (marks.value === null) return null;
  return Math.max(markOf(seenName(type, key))?.at ?? 0, markOf(BASE)?.at ?? 0);
}

/** It was read until that moment. What is said to one agent is read with whatever else it says. */
export function markSeen({ type, key }, at) {
  if (type === "agent" && status.value) [type, key] = ["pair", `${key},${status.value.you}`];
  if (["all", "agent"].includes(type) || marks.value === null || seenAt(type, key) >= at) return;
  mark({ [seenName(type, key)]: { at } });
}

export const markAllSeen = (at = Date.now()) => mark({ [BASE]: { at } });

/** A person who is new here has read nothing, and needs to be told of nothing that is over. */
export function beginReading() {
  if (marks.value !== null && markOf(BASE) === null) markAllSeen();
}
