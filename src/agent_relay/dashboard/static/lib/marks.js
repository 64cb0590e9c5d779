// What this person has seen and put aside, kept by the daemon, so that all their browsers agree: names, each with a moment.
//
// `seen:<conversation>` is how far it was read, `done:<item>` an item of the inbox that is done, `later:<item>` one that comes back.

import { effect, signal, untracked } from "./ui.js";
import { get, post } from "./api.js";
import { atMostEvery } from "./frames.js";
import { onReset } from "./live.js";
import { status } from "./store.js";

const READ_MS = 500;
const SEND_MS = 1_500; // reading on marks again and again
const TRY_AGAIN_MS = 5_000;

/** By name: { at, until }; null until they were read. */
export const marks = signal(null);

let version = null;
let waiting = { set: {}, remove: [] }; // said here, and not yet to the daemon

export const markOf = (name) => marks.value?.[name] ?? null;

/** `set`: { name: { at, until } }; `remove`: names. What is said here counts at once. */
export function mark(set, remove = []) {
  if (marks.value === null) return; // nothing is known of what was seen before
  const newer = Object.entries(set).filter(([name, { at }]) => !(marks.value[name]?.at > at));
  if (!newer.length && !remove.some((name) => Object.hasOwn(marks.value, name))) return;
  const gone = new Set(remove);
  const keep = (found) => Object.fromEntries([...Object.entries(found), ...newer].filter(([name]) => !gone.has(name)));
  marks.value = keep(marks.value);
  waiting = { set: keep(waiting.set), remove: [...waiting.remove.filter((name) => !newer.some(([each]) => each === name)), ...remove] };
  send();
}

const send = atMostEvery(SEND_MS, async () => {
  const { set, remove } = waiting;
  if (!Object.keys(set).length && !remove.length) return;
  waiting = { set: {}, remove: [] };
  try {
    take(await post("marks", { set, remove }));
  } catch (error) {
    waiting = { set: { ...set, ...waiting.set }, remove: [...remove, ...waiting.remove] };
    if (!error.isAway) console.error(error);
    setTimeout(send, TRY_AGAIN_MS);
  }
});

const read = atMostEvery(READ_MS, async () => {
  try {
    take(await get("marks"));
  } catch (error) {
    if (!error.isAway) console.error(error);
  }
});

function take(found) {
  version = found.version;
  const own = Object.entries(waiting.set);
  marks.value = Object.fromEntries([...Object.entries(found.marks), ...own].filter(([name]) => !waiting.remove.includes(name)));
}

/** Another browser says something: the status tells. */
effect(() => {
  const newest = status.value?.marksVersion;
  if (newest !== undefined && newest !== version) untracked(read);
});
onReset(read);
addEventListener("pagehide", () => send());
