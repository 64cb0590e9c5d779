// Who has talked with whom and how much: read from the daemon, and read again while messages come.

import { computed, signal } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { atMostEvery } from "../lib/frames.js";
import { onEvents, onReset } from "../lib/live.js";
import { agents } from "../lib/store.js";
import { dotOf } from "../shell/agent-list.js";

const READ_MS = 4_000;
const MOST = 1_000;

const conversations = signal(null);
export const error = signal(null);
/** False until there was an answer. */
export const isRead = computed(() => conversations.value !== null);

export const read = atMostEvery(READ_MS, async () => {
  try {
    conversations.value = (await get("conversations", { limit: MOST })).conversations;
    error.value = null;
  } catch (problem) {
    error.value = problem;
  }
});

/** Keeps it up to date; returns how to stop. */
export function follow() {
  read();
  const undo = [onEvents(["message.exchanged"], read), onReset(read)];
  return () => undo.forEach((each) => each());
}

/** Edges: [{ id, from, to, count, at, type }]; of a channel to each of its members. `at` is the time of the last message. */
export const edges = computed(() => {
  const found = conversations.value ?? [];
  const pairs = found.filter((each) => each.type === "pair").map(({ key, count, last }) => {
    const [from, to] = key.split(",");
    return { id: key, from, to, count, at: last.ts, type: "pair" };
  });
  const channels = found.filter((each) => each.type === "channel").flatMap(({ key, count, last }) =>
    membersOf(key).map((name) => ({ id: `${name}>${key}`, from: name, to: key, count, at: last.ts, type: "channel" })));
  return [...pairs, ...channels].filter((each) => each.from && each.to && each.from !== each.to);
});

/** Nodes by id: agents, whoever else has written, and channels. */
export const nodes = computed(() => {
  const found = new Map();
  const add = (id) => {
    const agent = agents.value.get(id);
    found.set(id, { id, isChannel: id.startsWith("#"), state: agent ? dotOf(agent) : "offline", agent, total: 0 });
  };
  agents.value.forEach((_, name) => add(name));
  for (const { from, to, count, type } of edges.value) {
    [from, to].forEach((id) => found.has(id) || add(id));
    if (type === "pair") [from, to].forEach((id) => { found.get(id).total += count; });
    else found.get(to).total = count;
  }
  return found;
});

/** The recipients of a message, as nodes. */
export function recipientsOf({ from, to, channel }) {
  if (to === "*") return [...agents.value.values()].filter((agent) => agent.connected && agent.name !== from).map((agent) => agent.name);
  if (to.startsWith("#")) return [to];
  if (!to && channel) return [channel];
  return to.split(",").map((name) => name.trim());
}

/** Those who listen to a channel. */
export const membersOf = (channel) => [...agents.value.values()].filter((agent) => agent.channels.includes(channel)).map((agent) => agent.name);
