// Decisions that a person has made and that are not sent yet: for a few seconds each can be taken back.
//
// A decision is about what was shown when it was made. If that goes away or changes meanwhile (somebody else decided, the agent asks
// something else), it is dropped and said so. A page that is closed sends nothing: the browser asks before, and the request stays open.

import { effect, signal, untracked } from "./ui.js";
import { addShortcut } from "./keys.js";
import { permissions, questions, readRequests } from "./store.js";
import { say } from "./toasts.js";

export const UNDO_MS = 5_000;
const LATEST_MS = 15_000; // a machine that slept must not send in the morning what was pressed in the evening
const TICK_MS = 200;

/** By the id of their request: { id, agentName, doing, seen, until, secondsLeft, isSending }, the newest last. */
export const decisions = signal(new Map());

const work = new Map(); // by id: { send, timer }
let ticking = 0;
let removeKey = null;

/** What a request says, to tell whether it is still the one that was shown. */
export const wordingOf = (about) => JSON.stringify(about);

export const findRequest = (id) => permissions.value.get(id) ?? questions.value.get(id) ?? null;

/** `about` is the request as it was shown, `doing` such as "Approving", `send` does it and returns what to say then. */
export function decide({ id, about, doing, send }) {
  if (decisions.value.has(id)) return;
  const now = findRequest(id);
  if (!now || wordingOf(now) !== wordingOf(about)) {
    say(now ? `${about.agentName}'s request has changed. Please look again.` : `${about.agentName} no longer asks this.`, { tone: "warning" });
    return;
  }
  const entry = { id, agentName: about.agentName, doing, seen: wordingOf(about), until: Date.now() + UNDO_MS, secondsLeft: UNDO_MS / 1_000, isSending: false };
  work.set(id, { send, timer: setTimeout(() => sendNow(id), UNDO_MS) });
  put(entry);
}

/** Takes a decision back, where it is not sent yet; without an id, the newest. */
export function undo(id = [...decisions.value.values()].findLast((each) => !each.isSending)?.id) {
  const entry = decisions.value.get(id);
  if (!entry || entry.isSending) return;
  drop(id);
  say(`Undone. ${entry.agentName} is still waiting.`);
}

async function sendNow(id) {
  const entry = decisions.value.get(id);
  if (Date.now() > entry.until + LATEST_MS - UNDO_MS) {
    drop(id);
    say(`This page was asleep: your decision for ${entry.agentName} was not sent. Please look again.`, { tone: "warning" });
    readRequests();
    return;
  }
  const { send } = work.get(id);
  put({ ...entry, isSending: true });
  try {
    const said = await send();
    forget(id);
    say(said, { tone: "success" });
  } catch (error) {
    say(error.message, { tone: "danger" });
    readRequests();
  } finally {
    drop(id);
  }
}

/** It is decided: its card need not wait for the next answer of the daemon. */
function forget(id) {
  for (const requests of [permissions, questions]) {
    if (requests.value.has(id)) requests.value = new Map([...requests.value].filter(([each]) => each !== id));
  }
}

function put(entry) {
  decisions.value = new Map([...decisions.value, [entry.id, entry]]);
  removeKey ??= addShortcut("u", "Undo the last decision", () => undo());
  ticking ||= setInterval(tick, TICK_MS);
}

function drop(id) {
  clearTimeout(work.get(id)?.timer);
  work.delete(id);
  decisions.value = new Map([...decisions.value].filter(([each]) => each !== id));
  if (decisions.value.size) return;
  clearInterval(ticking);
  ticking = 0;
  removeKey?.();
  removeKey = null;
}

function tick() {
  const next = [...decisions.value].map(([id, entry]) => [id, { ...entry, secondsLeft: Math.max(1, Math.ceil((entry.until - Date.now()) / 1_000)) }]);
  if (next.some(([id, entry]) => entry.secondsLeft !== decisions.value.get(id).secondsLeft)) decisions.value = new Map(next);
}

effect(() => {
  const open = new Map([...permissions.value, ...questions.value]);
  untracked(() => {
    for (const { id, agentName, doing, seen, isSending } of decisions.value.values()) {
      const now = open.get(id);
      if (isSending || (now && wordingOf(now) === seen)) continue;
      drop(id);
      const why = now ? "the request has changed" : "it was decided elsewhere, or is no longer open";
      say(`${doing} for ${agentName} was not sent: ${why}.`, { tone: "warning" });
    }
  });
});

addEventListener("beforeunload", (event) => {
  if (decisions.value.size) event.preventDefault(); // the browser asks; whoever leaves all the same has decided nothing
});
