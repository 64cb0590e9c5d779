// The one stream of this tab: everything that happens at the daemon, in order, without a gap.
//
// A stream that breaks goes on after the last event that was seen (`Last-Event-ID`). Where too much was missed to be played back, or it is no
// longer kept, everybody who listens with `onReset` reads anew what it shows. Events reach listeners once a frame, many at a time.

import { batch, signal } from "./ui.js";
import { get, open, url } from "./api.js";
import { oncePerFrame } from "./frames.js";
import { readEvents } from "./sse.js";

const SILENCE_MS = 40_000; // there is a heartbeat every 30 seconds
const SHORT_SILENCE_MS = 32_000; // after the machine slept, or came back to a network
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const MOST_REPLAYED = 5_000; // beyond that reading anew is faster
const CAUGHT_UP_MS = 400;

/** `state`: connecting, live, replaying or reconnecting. `retryAt`: when the next attempt is made, ms. `reason`: why, where it was said. */
export const connection = signal({ state: "connecting", retryAt: 0, reason: "" });
/** The number of the newest event that was seen. */
export const lastSeq = signal(null);

const listeners = new Set();
const resets = new Set();
let waiting = [];
let heardAt = 0;
let attempt = 0;
let replayUntil = null;
let caughtUpTimer = 0;
let abort = null;
let wake = null;

/** Calls `listen(events)` with those whose type is in `types` (`["agent.state", "permission.*"]`; null for all). Returns how to stop. */
export function onEvents(types, listen) {
  const entry = { wants: matcher(types), listen };
  listeners.add(entry);
  return () => listeners.delete(entry);
}

/** Calls `read` when what was missed cannot be played back: read from the API what you show. Returns how to stop. */
export function onReset(read) {
  resets.add(read);
  return () => resets.delete(read);
}

/** Follows the stream for as long as the page lives. `from` is the event number to go on after; null is from now on. */
export async function follow(from) {
  lastSeq.value = from;
  setInterval(() => Date.now() - heardAt > SILENCE_MS && abort?.abort(), 5_000);
  addEventListener("online", comeBack);
  addEventListener("offline", () => abort?.abort());
  document.addEventListener("visibilitychange", () => document.hidden || comeBack());
  for (;;) {
    let reason = "";
    try {
      await connect();
    } catch (error) {
      // Whatever it was: it is shown as reconnecting, and tried again. A host that cannot reach its cluster says so itself.
      if (error.isAway && error.status) reason = error.message;
    }
    await pause(reason);
  }
}

/** Tries again at once, where it waits to reconnect. */
export function reconnectNow() {
  wake?.();
}

async function connect() {
  abort = new AbortController();
  heardAt = Date.now();
  if (attempt > 0) await skipWhatIsTooMuch();
  const headers = lastSeq.value === null ? {} : { "Last-Event-ID": String(lastSeq.value) };
  const response = await open(url("events/sse"), { headers, signal: abort.signal });
  if (replayUntil !== null && lastSeq.value < replayUntil) connection.value = { state: "replaying", retryAt: 0, reason: "" };
  else goLive();
  attempt = 0;
  await readEvents(response.body, take, () => { heardAt = Date.now(); });
}

async function skipWhatIsTooMuch() {
  const { lastSeq: newest } = await get("status", {}, { signal: abort.signal });
  const missed = newest - (lastSeq.value ?? newest);
  replayUntil = newest;
  if (missed < 0 || missed > MOST_REPLAYED || lastSeq.value === null) {
    lastSeq.value = newest; // fewer than we have seen: another daemon's events
    resetAll();
  }
}

function take({ type, id, data }) {
  const event = JSON.parse(data);
  if (type === "stream.gap") resetAll();
  if (id) lastSeq.value = id;
  waiting.push(event);
  if (connection.value.state === "replaying") {
    clearTimeout(caughtUpTimer);
    if (replayUntil === null || id >= replayUntil) goLive();
    else caughtUpTimer = setTimeout(goLive, CAUGHT_UP_MS);
  }
  hand();
}

function goLive() {
  clearTimeout(caughtUpTimer);
  replayUntil = null;
  if (connection.value.state !== "live") connection.value = { state: "live", retryAt: 0, reason: "" };
}

const hand = oncePerFrame(() => {
  const events = waiting;
  waiting = [];
  batch(() => {
    for (const { wants, listen } of [...listeners]) {
      const chosen = wants ? events.filter((event) => wants(event.type)) : events;
      if (chosen.length) safely(() => listen(chosen));
    }
  });
});

function resetAll() {
  for (const read of [...resets]) safely(read);
}

function safely(work) {
  try {
    work();
  } catch (error) {
    console.error(error); // one listener's fault is not the others'
  }
}

async function pause(reason) {
  attempt += 1;
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1));
  const wait = longest * (0.7 + Math.random() * 0.3);
  connection.value = { state: "reconnecting", retryAt: Date.now() + wait, reason };
  await new Promise((resolve) => {
    wake = resolve;
    setTimeout(resolve, wait);
  });
  wake = null;
}

function comeBack() {
  if (Date.now() - heardAt > SHORT_SILENCE_MS) abort?.abort();
  reconnectNow();
}

function matcher(types) {
  if (types === null) return null;
  const exact = new Set(types.filter((type) => !type.endsWith(".*")));
  const prefixes = types.filter((type) => type.endsWith(".*")).map((type) => type.slice(0, -1));
  return (type) => exact.has(type) || prefixes.some((prefix) => type.startsWith(prefix));
}
