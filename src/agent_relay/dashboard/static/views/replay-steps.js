// From events to the steps of a replay: what belongs together is one step, which fills up as time goes on.

import { get } from "../lib/api.js";
import { describe, groupOf } from "./event-kinds.js";

const PAGE = 1_000;
const MOST = 30_000; // a longer past is replayed from its beginning up to there

/** Reads the events of `query` and folds them: { steps, from, to, usages, isCut }. `onProgress(count)` is told how many are here. */
export async function readSteps(query, { signal, onProgress }) {
  const events = [];
  let cursor = null;
  do {
    const page = await get("events", { ...query, limit: PAGE, cursor }, { signal });
    events.push(...page.events);
    onProgress(events.length);
    cursor = page.next_cursor;
  } while (cursor !== null && events.length < MOST);
  const steps = foldEvents(events);
  const usages = events.filter((event) => event.type === "tokens.used");
  return { steps, usages, from: events[0]?._ts ?? 0, to: events.at(-1)?._ts ?? 0, isCut: cursor !== null };
}

/** A step: { id, ts, kind, group, agent, event, text, parts: [{ ts, text }], ended: null | event }, sorted by time. */
export function foldEvents(events) {
  const steps = [];
  const open = new Map(); // by what the events that follow call it
  for (const event of events) {
    const key = keyOf(event);
    const known = key && open.get(key);
    if (known && isLater(event)) {
      if (event.type === "item.delta") known.parts.push({ ts: event._ts, text: event.delta.content });
      else known.ended ??= event;
    } else if (!isQuiet(event)) {
      const step = makeStep(event);
      steps.push(step);
      if (key) open.set(key, step);
    }
  }
  return steps;
}

const later = new Set(["item.delta", "item.completed", "permission.resolved", "question.resolved", "message.delivered"]);
const isLater = (event) => later.has(event.type);
/** What is no step: it is counted elsewhere, or belongs to something that is not here. */
const isQuiet = (event) => event.type === "tokens.used" || isLater(event);

function keyOf(event) {
  const id = event.itemId ?? event.requestId ?? event.questionId ?? event.messageId;
  return id ? `${event.type.split(".", 1)[0]} ${id}` : null;
}

const kinds = { message: "message", item: "item", permission: "request", question: "request", command: "command", file: "file" };

function makeStep(event) {
  const kind = kinds[event.type.split(".", 1)[0]] ?? "note";
  const { _seq: id, _ts: ts, _agentName: agent, type } = event;
  return { id, ts, agent, kind, group: groupOf(type), event, text: describe(event), parts: [], ended: null };
}
