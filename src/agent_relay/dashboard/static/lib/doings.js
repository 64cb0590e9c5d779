// What agents do now, as it happens; what was before is in the list of agents. Told once a second: nobody reads faster.

import { signal } from "./ui.js";
import { atMostEvery } from "./frames.js";
import { onEvents, onReset } from "./live.js";

const TOLD_MS = 1_000;
const TICK_MS = 20_000;

/** By name: { kind, what, text, at }, as an agent's `doing`. */
export const doings = signal(new Map());
/** Goes on now and then, for what says how long ago something was. */
export const clockTick = signal(Date.now());

const fresh = new Map();
const tell = atMostEvery(TOLD_MS, () => {
  if (!fresh.size) return;
  doings.value = new Map([...doings.value, ...fresh]);
  fresh.clear();
});

const readers = {
  "item.started": ({ itemType }) => ({ kind: "item", what: itemType, text: "" }),
  "file.operation": ({ operation, filePath }) => ({ kind: "file", what: operation, text: filePath }),
  "command.executed": ({ command }) => ({ kind: "command", what: "run", text: command.trim().split("\n", 1)[0] }),
};

onEvents(Object.keys(readers), (events) => {
  for (const event of events) fresh.set(event._agentName, { ...readers[event.type](event), at: event._ts });
  tell();
});
onReset(() => { doings.value = new Map(); });
setInterval(() => { clockTick.value = Date.now(); }, TICK_MS);

/** The newer of what the list of agents said and what was heard since. */
export function doingOf({ name, doing }) {
  const heard = doings.value.get(name);
  return heard && heard.at > (doing?.at ?? 0) ? heard : (doing ?? null);
}
