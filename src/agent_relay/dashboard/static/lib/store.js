// What the page knows about the daemon: read once, then kept up to date by the events of the one stream.

import { batch, computed, effect, signal, untracked } from "./ui.js";
import { get } from "./api.js";
import { atMostEvery } from "./frames.js";
import { describeBudget, isSpent } from "./budgets.js";
import { connection, follow, onEvents, onReset } from "./live.js";
import { say } from "./toasts.js";

/** Agents by name, in the daemon's order: connected ones first. */
export const agents = signal(new Map());
/** Requests that wait for a person, by id, the oldest first. */
const unread = new Map();
export const permissions = signal(unread);
export const questions = signal(unread);
/** False until both are here: before that, nobody knows that nothing waits. */
export const areRequestsRead = computed(() => permissions.value !== unread && questions.value !== unread);
/** { version, uptimeMs, project, projectName, deadLetters, messages, lastSeq, … } as GET /api/v1/status says; null until it was read. */
export const status = signal(null);
/** What was spent: { total, byAgent, byModel, … } as GET /api/v1/costs says; null until it was read. */
export const costs = signal(null);
/** False until the first answers are here. */
export const isReady = signal(false);
/** The names of agents that wait for a person, whatever they say of themselves. */
export const asking = computed(() => new Set([...permissions.value.values(), ...questions.value.values()].map((each) => each.agentName)));

/** Proposals that are open, as GET /api/v1/proposals says. */
export const openProposals = signal([]);
/** How many of them wait for your vote. */
export const votesAsked = computed(() => openProposals.value.filter(({ participants, votes }) => (
  participants.some(isYou) && !Object.keys(votes).some(isYou))).length);

const OLDER_NAMES = ["http"]; // that earlier versions sent under from here
const SPARE_NAMES = 9;

/** Whether it is the name that messages from here are from, or stands in for it while a command line has it. */
export const isYou = (name) => ownNames.value.has(name.toLowerCase());

const ownNames = computed(() => {
  const you = status.value?.you.toLowerCase();
  const spare = you ? Array.from({ length: SPARE_NAMES - 1 }, (_, index) => `${you}-${index + 2}`) : [];
  return new Set([...OLDER_NAMES, ...(you ? [you] : []), ...spare]);
});

const AGENTS_MS = 1_500;
const AGENTS_EACH_MS = 75; // what every message asks for is asked for the more rarely the more there are to be told of
const AGENTS_LONGEST_MS = 15_000;
const REQUESTS_MS = 250;
const NUMBERS_MS = 4_000;
const COSTS_MS = 10_000; // the daemon adds them up from every event it keeps
const QUIET_NUMBERS_MS = 30_000;

export const readAgents = atMostEvery(AGENTS_MS, () => read("agents", ({ agents: found }) => {
  agents.value = byKey(found, "name");
}));
/** As events ask for it; states are known from them, so only numbers wait. */
const followAgents = atMostEvery(() => Math.min(AGENTS_LONGEST_MS, Math.max(AGENTS_MS, agents.value.size * AGENTS_EACH_MS)), () => readAgents());
export const readRequests = atMostEvery(REQUESTS_MS, () => {
  read("permissions", (found) => { permissions.value = byKey(found.permissions, "requestId"); });
  read("questions", (found) => { questions.value = byKey(found.questions, "questionId"); });
});
export const readProposals = atMostEvery(REQUESTS_MS, () => read("proposals", (found) => { openProposals.value = found.proposals; }));
export const readNumbers = atMostEvery(NUMBERS_MS, () => {
  read("status", (found) => { status.value = found; });
});
export const readCosts = atMostEvery(COSTS_MS, () => read("costs", (found) => { costs.value = found; }));

/** Reads everything, then follows the stream from where that was. */
export async function start() {
  const first = await readUntilThere("status");
  status.value = first;
  listen();
  follow(first.lastSeq);
  setInterval(readNumbers, QUIET_NUMBERS_MS);
}

function readAll() {
  readAgents();
  readRequests();
  readProposals();
  readNumbers();
  readCosts();
}

function listen() {
  onReset(readAll);
  effect(() => { if (connection.value.state === "live") untracked(readAll); }); // what is not told by events may have changed meanwhile
  onEvents(["agent.state"], noteStates);
  onEvents(["agent.spawned", "agent.released", "session.*"], readAgents);
  onEvents(["message.*"], followAgents);
  onEvents(["permission.resolved", "question.resolved"], dropResolved);
  onEvents(["permission.*", "question.*"], readRequests);
  onEvents(["consensus.*"], readProposals);
  onEvents(["tokens.used", "message.*"], readNumbers);
  onEvents(["tokens.used"], readCosts);
  onEvents(["budget.exceeded"], (events) => events.forEach((event) => {
    say(describeBudget(event), { tone: isSpent(event) ? "danger" : "warning" });
  }));
  onEvents(["loop.detected"], (events) => say(events.at(-1).text, { tone: "warning" }));
}

function noteStates(events) {
  const next = new Map(agents.value);
  for (const event of events) {
    const known = next.get(event._agentName);
    if (!known) {
      readAgents();
      continue;
    }
    const { state, waitingFor = null, door = known.door, doorNote = known.doorNote, paused = false } = event;
    const hold = state === known.state && paused === known.paused ? known.hold : null;
    next.set(known.name, { ...known, state, waitingFor, door, doorNote, paused, hold, connected: state !== "offline" });
  }
  agents.value = next;
  followAgents(); // why messages wait is the daemon's to say
}

function dropResolved(events) {
  batch(() => {
    permissions.value = without(permissions.value, new Set(events.map((event) => event.requestId)));
    questions.value = without(questions.value, new Set(events.map((event) => event.questionId)));
  });
}

/** The same map, where none of them is in it. */
const without = (requests, ids) =>
  ([...requests.keys()].some((id) => ids.has(id)) ? new Map([...requests].filter(([id]) => !ids.has(id))) : requests);

async function read(path, take) {
  try {
    const found = await get(path);
    batch(() => {
      take(found);
      if (path === "agents") isReady.value = true;
    });
  } catch (error) {
    if (!error.isAway) console.error(error);
  }
}

async function readUntilThere(path) {
  for (let wait = 500; ; wait = Math.min(wait * 2, 8_000)) {
    try {
      return await get(path);
    } catch (error) {
      if (error.status > 0 && !error.retryable) throw error;
      await new Promise((resolve) => { setTimeout(resolve, wait); });
    }
  }
}

const byKey = (list, key) => new Map(list.map((each) => [each[key], each]));
