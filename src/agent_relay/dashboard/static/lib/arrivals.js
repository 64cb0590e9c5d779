// What arrives in the inbox, told once each: to a sound, a notification, a screen reader.

import { effect, untracked } from "./ui.js";
import { inbox, isInboxRead } from "./inbox.js";

const listeners = new Set();
let known = null; // by id: the moment

/** Calls `listen(items)` with those that are new; what was there when the page was opened is no news. Returns how to stop. */
export function onArrivals(listen) {
  listeners.add(listen);
  return () => listeners.delete(listen);
}

effect(() => {
  if (!isInboxRead.value) return;
  const items = inbox.value;
  const before = known;
  known = new Map([...(before ?? []), ...items.map((item) => [item.id, item.at])]);
  if (before === null) return;
  const fresh = items.filter(({ id, at }) => !before.has(id) || before.get(id) < at);
  if (fresh.length) untracked(() => listeners.forEach((listen) => listen(fresh)));
});
