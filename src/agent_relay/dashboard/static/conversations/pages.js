// The messages of a conversation, a page at a time, the newest first; a thread that began as an answer begins with what was answered.

import { get, part } from "../lib/api.js";
import { isAnswer } from "./threads.js";

/** { messages, next_cursor } as GET /api/v1/messages says. */
export async function readPage(place, query) {
  const page = await get("messages", { ...place.query, receipts: true, ...query });
  const isWhole = page.next_cursor === null && query.order !== "oldest" && !place.search;
  if (!isWhole || place.type !== "thread" || !isAnswer(place.key)) return page;
  const answered = await readAnswered(place.key);
  return answered ? { ...page, messages: [...page.messages, answered] } : page;
}

async function readAnswered(id) {
  try {
    return await get(`messages/${part(id)}`);
  } catch (error) {
    if (error.isAway) throw error;
    return null; // it is no longer kept
  }
}
