// What needs a person, from wherever it comes, as one list: what is counted in the bar, the title, the icon and the notifications.
//
// An item: { id, kind, at, rank, about }. `id` is the same as long as it is about the same thing, and `at` grows when something new
// is said of it: what was done before that is open once more. Requests cannot be done here, only decided or put off.

import { computed, effect, signal } from "./ui.js";
import { get } from "./api.js";
import { atMostEvery } from "./frames.js";
import { connection, onEvents, onReset } from "./live.js";
import { mark, markOf, marks } from "./marks.js";
import { seenAt } from "./seen.js";
import { agents, areRequestsRead, asking, isReady, isYou, openProposals, permissions, questions, status } from "./store.js";

const RANKS = { critical: 0, high: 1, medium: 2, low: 3 };
const RANK = { question: 2, vote: 3, message: 4, loop: 5, stuck: 5, crashed: 6, budget: 6, dead: 7 };
/** Why messages wait, where nothing but a person ends it. */
const STUCK = new Set(["prompt", "decision", "program", "not_taken", "draft", "scrolled_back", "dialog", "other"]);
const STUCK_MS = 10_000; // a draft that is being written is no trouble yet
const DAY_MS = 86_400_000;
const RECENT_MS = 7 * DAY_MS; // older messages are history
const READ_MS = 1_500;
const TICK_MS = 5_000;
const MOST = 200;

/** What is read for the inbox alone; null until it was. */
const messages = signal(null);
const letters = signal(null);
const alarms = signal(null);
const now = signal(Date.now());
const stuckSince = new Map(); // by the agent's name: { reason, at }

export const isInboxRead = computed(() => areRequestsRead.value && isReady.value && marks.value !== null
  && [messages, letters, alarms].every((source) => source.value !== null));

const reader = (source, work) => atMostEvery(READ_MS, async () => {
  try {
    source.value = await work();
  } catch (error) {
    if (!error.isAway) console.error(error);
    source.value ??= []; // the others are shown all the same
  }
});

const readMessages = reader(messages, async () => {
  const you = status.value?.you;
  if (!you) return [];
  return (await get("messages", { with: you, since: Date.now() - RECENT_MS, limit: MOST })).messages;
});
const readLetters = reader(letters, async () => (await get("dead-letters", { limit: MOST })).deadLetters);
const readAlarms = reader(alarms, async () => {
  const types = "budget.exceeded,session.ended";
  return (await get("events", { types, since: Date.now() - DAY_MS, limit: 1000 })).events;
});

function readAll() {
  readMessages();
  readLetters();
  readAlarms();
}

onReset(readAll);
effect(() => { if (connection.value.state === "live" && status.value) readAll(); });
onEvents(["message.exchanged"], (events) => { if (events.some(isToYou)) readMessages(); });
onEvents(["budget.exceeded", "session.ended"], readAlarms);
setInterval(() => { now.value = Date.now(); }, TICK_MS);
let lettersKnown = 0;
effect(() => {
  const count = status.value?.deadLetters ?? 0;
  if (count !== lettersKnown) readLetters();
  lettersKnown = count;
});

/** Whether it was written to this person by name. */
const isToYou = ({ from, to }) => !isYou(from) && (to ?? "").split(",").some((name) => isYou(name.trim()));

function* requestItems() {
  for (const about of permissions.value.values()) {
    yield { id: about.requestId, kind: "permission", at: about.requestedAt, rank: RANKS[about.riskLevel], about };
  }
  for (const about of questions.value.values()) {
    yield { id: about.questionId, kind: "question", at: about.requestedAt, rank: RANK.question, about };
  }
}

function* voteItems() {
  for (const about of openProposals.value) {
    if (about.participants.some(isYou) && !Object.keys(about.votes).some(isYou)) {
      yield { id: `vote:${about.proposalId}`, kind: "vote", at: about.proposedAt, rank: RANK.vote, about };
    }
  }
}

/** What somebody wrote to you, since you last wrote to them or read it. */
function* messageItems() {
  const byName = Map.groupBy((messages.value ?? []).filter(isToYou), (message) => message.from);
  for (const [name, said] of byName) {
    const answered = (messages.value ?? []).find((message) => isYou(message.from) && message.to === name)?.ts ?? 0;
    const seen = seenAt("pair", `${name},${status.value.you}`) ?? 0;
    const open = said.filter((message) => message.ts > Math.max(answered, seen));
    if (open.length) {
      yield { id: `message:${name}`, kind: "message", at: open[0].ts, rank: RANK.message, about: { name, last: open[0], count: open.length } };
    }
  }
}

function* agentItems() {
  for (const agent of agents.value.values()) {
    const { name, hold } = agent;
    if (!agent.connected || !hold || isYou(name)) continue;
    if (hold.reason === "loop_guard") yield { id: `loop:${name}`, kind: "loop", at: 0, rank: RANK.loop, about: { name, hold } };
    else if (isStuck(agent)) yield { id: `stuck:${name}`, kind: "stuck", at: 0, rank: RANK.stuck, about: { name, hold, state: agent.state } };
  }
}

/** Whether messages wait for something that nothing but a person ends, and have for a while. */
function isStuck({ name, hold, queueDepth, inflight }) {
  const since = stuckSince.get(name);
  if (!STUCK.has(hold.reason) || asking.value.has(name) || !(queueDepth + inflight)) {
    stuckSince.delete(name);
    return false;
  }
  if (since?.reason !== hold.reason) stuckSince.set(name, { reason: hold.reason, at: Date.now() });
  return now.value - stuckSince.get(name).at >= STUCK_MS;
}

function* alarmItems() {
  const newest = new Map();
  for (const event of alarms.value ?? []) {
    if (event.type === "budget.exceeded") newest.set(`budget:${event.agent ?? (event.team ? `team:${event.team}` : event.budget)}`, { kind: "budget", event });
    else if (event.reason === "crashed" && event._agentName) newest.set(`crashed:${event._agentName}`, { kind: "crashed", event });
  }
  for (const [id, { kind, event }] of newest) {
    if (kind === "crashed" && agents.value.get(event._agentName)?.connected) continue; // it was started again
    yield { id, kind, at: event._ts, rank: RANK[kind], about: event };
  }
}

function* deadItems() {
  for (const [name, dead] of Map.groupBy(letters.value ?? [], (letter) => letter.dead.to)) {
    yield { id: `dead:${name}`, kind: "dead", at: dead[0].dead.at, rank: RANK.dead, about: { name, letters: dead } };
  }
}

const all = computed(() => [...requestItems(), ...voteItems(), ...messageItems(), ...agentItems(), ...alarmItems(), ...deadItems()]);

const isDone = ({ id, at }) => at > 0 && (markOf(`done:${id}`)?.at ?? -1) >= at;
const isLater = ({ id }) => (markOf(`later:${id}`)?.until ?? 0) > now.value;

/** The riskiest first, then what waits longest; news the newest first. */
const inOrder = (one, other) => one.rank - other.rank || (one.rank < RANK.message ? one.at - other.at : other.at - one.at);

/** What is open, in order. */
export const inbox = computed(() => all.value.filter((item) => !isDone(item) && !isLater(item)).sort(inOrder));
/** What was put off, the first to come back first. */
export const later = computed(() => all.value.filter((item) => !isDone(item) && isLater(item))
  .map((item) => ({ ...item, until: markOf(`later:${item.id}`).until })).sort((one, other) => one.until - other.until));
export const inboxCount = computed(() => inbox.value.length);

export const canBeDone = ({ at, kind }) => at > 0 && !["permission", "question", "vote"].includes(kind);

/** Each returns how to take it back. */
export function setDone(item) {
  mark({ [`done:${item.id}`]: { at: item.at } }, [`later:${item.id}`]);
  return () => mark({}, [`done:${item.id}`]);
}

export function putOff(item, until) {
  mark({ [`later:${item.id}`]: { at: Date.now(), until } });
  return () => mark({}, [`later:${item.id}`]);
}

/** [words, how many] of each kind that is open: "2 permissions". */
const WORDS = {
  permission: ["permission"], question: ["question"], vote: ["vote"], message: ["conversation"], loop: ["loop"], stuck: ["stuck agent"],
  crashed: ["crashed agent"], budget: ["budget alert"], dead: ["agent with dead letters", "agents with dead letters"],
};
export const countsByKind = computed(() => Object.entries(WORDS)
  .map(([kind, words]) => [inbox.value.filter((item) => item.kind === kind).length, ...words]).filter(([count]) => count));
