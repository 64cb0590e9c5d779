// Requests as they arrive, told once each: to a sound, a notification, a screen reader.

import { effect, untracked } from "./ui.js";
import { areRequestsRead, permissions, questions } from "./store.js";

const listeners = new Set();
let known = null;

/** Calls `listen(requests)` with those that are new; what was there when the page was opened is no news. Returns how to stop. */
export function onArrivals(listen) {
  listeners.add(listen);
  return () => listeners.delete(listen);
}

effect(() => {
  if (!areRequestsRead.value) return;
  const open = new Map([...permissions.value, ...questions.value]);
  const before = known;
  known = new Set(open.keys());
  if (before === null) return;
  const fresh = [...open.values()].filter((about) => !before.has(about.requestId ?? about.questionId));
  if (fresh.length) untracked(() => listeners.forEach((listen) => listen(fresh)));
});
