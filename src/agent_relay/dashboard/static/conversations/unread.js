// How many messages of each conversation were not read yet: counted once, then by how the conversation grows.

import { signal } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { seenAt, seenName } from "../lib/seen.js";
import { isYou } from "../lib/store.js";
import { placeOf } from "./place.js";

const MOST = 100; // beyond that nobody counts
const AT_ONCE = 2; // requests

const counted = signal(new Map()); // by the mark's name: { at, total, unread }
const waiting = new Map();
let reading = 0;

/** Of a conversation as GET /api/v1/conversations has it; 0 where all was read, null while they are not counted. */
export function unreadOf({ type, key, count, last }) {
  const at = seenAt(type, key);
  if (at === null || !last || last.ts <= at || isYou(last.from)) return 0;
  const name = seenName(type, key);
  const known = counted.value.get(name);
  if (known?.at === at) return Math.min(MOST, known.unread + Math.max(0, count - known.total));
  want(name, { type, key, at, total: count, until: last.ts + 1 });
  return null;
}

export const showUnread = (unread) => (unread >= MOST ? `${MOST - 1}+` : String(unread));

function want(name, about) {
  if (waiting.get(name)?.at === about.at) return;
  waiting.set(name, about);
  if (reading < AT_ONCE) readNext();
}

async function readNext() {
  reading += 1;
  for (let [name, about] = next(); name; [name, about] = next()) {
    const { type, key, at, total, until } = about;
    about.isRead = true;
    try {
      const { query } = placeOf({ path: [type, key], query: {} });
      const { messages } = await get("messages", { ...query, since: at + 1, until, limit: MOST }); // as many as are in `total`: more may have come
      counted.value = new Map([...counted.value, [name, { at, total, unread: messages.filter(({ from }) => !isYou(from)).length }]]);
    } catch (error) {
      if (!error.isAway) console.error(error);
    }
    waiting.delete(name);
  }
  reading -= 1;
}

const next = () => [...waiting].find(([, { isRead }]) => !isRead) ?? [null, null];
