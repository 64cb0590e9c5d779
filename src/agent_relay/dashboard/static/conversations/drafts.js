// What a person is writing, one draft for each conversation: its words, who gets them, and the message it answers.
//
// A draft keeps its recipients. Another conversation that is opened has a draft of its own, and this one is there again on the way back.
// Only while nothing is written, nobody was chosen and the field is not in use does it follow whoever spoke last.

import { signal } from "../lib/ui.js";
import { afterQuiet } from "../lib/frames.js";
import { isYou } from "../lib/store.js";

const STORED = `agent-relay.drafts.${document.querySelector("meta[name=relay]")?.content ?? ""}`;
const KEEP_MS = 300;
const MOST = 50; // conversations with a draft; the oldest are let go
const LONGEST = 100_000; // characters

const EMPTY = { text: "", to: null, kind: "message", reply: null, before: null, isChosen: false };

const drafts = new Map(readKept().map(([home, draft]) => [home, signal({ ...EMPTY, ...draft })]));

/** What was being written when the page was closed, in this browser alone. */
function readKept() {
  try {
    const found = JSON.parse(localStorage.getItem(STORED));
    return Array.isArray(found) ? found.filter(([home, draft]) => typeof home === "string" && typeof draft?.text === "string") : [];
  } catch {
    return [];
  }
}

const keep = afterQuiet(KEEP_MS, keepNow);

function keepNow() {
  const written = [...drafts].map(([home, { value }]) => [home, value]).filter(([, { text }]) => text && text.length <= LONGEST).slice(-MOST);
  if (written.length) localStorage.setItem(STORED, JSON.stringify(written));
  else localStorage.removeItem(STORED);
}
addEventListener("pagehide", keepNow);

/** The draft of a conversation, a signal: { text, to, kind, reply, before, isChosen }. `to` is null until somebody is to get it. */
export function draftOf(place) {
  if (!drafts.has(place.home)) drafts.set(place.home, signal({ ...EMPTY, to: place.to }));
  return drafts.get(place.home);
}

/** Where nothing is written there is nothing to keep. */
export function leave(place) {
  const { text, reply } = draftOf(place).value;
  if (!text && !reply) drafts.delete(place.home);
}

export const change = (draft, part) => {
  draft.value = { ...draft.value, ...part };
  keep();
};

/** Answers a message: it goes where that came from, until it is sent or the answering is given up. */
export function answer(draft, reply) {
  const { to, before, reply: last } = draft.value;
  change(draft, { reply, to: answerTo(reply), before: last ? before : to });
}

export const giveUpAnswer = (draft) => change(draft, { reply: null, to: draft.value.before, before: null });

/** After it was sent: empty, and for those it was for before it became an answer. */
export function clear(draft) {
  const { reply, before, to } = draft.value;
  change(draft, { text: "", reply: null, before: null, to: reply ? before : to });
}

/** Who gets an answer to a message: its channel, whoever it went to where it was our own, else its sender. */
export function answerTo({ from, to }) {
  const isSame = to.startsWith("#") || isYou(from);
  return isSame ? to.split(",").map((name) => name.trim()).filter(Boolean) : [from];
}
