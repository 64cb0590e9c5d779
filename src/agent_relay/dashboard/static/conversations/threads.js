// What threads are called. One that began as an answer has the id of the message that was answered, and is named by its words.

import { signal } from "../lib/ui.js";
import { get, part } from "../lib/api.js";
import { showSeconds } from "../lib/format.js";

const ID = /^msg_[0-9A-HJKMNP-TV-Z]{26}$/;
const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const SHOWN = 60; // characters of the words
const AT_ONCE = 4; // requests

/** By the id of a thread: { from, body } of the message it answers; null where that is gone. */
const beginnings = signal(new Map());

const wanted = [];
const asked = new Set();
let reading = 0;

/** Whether a thread began as an answer to a message. */
export const isAnswer = (thread) => ID.test(thread);

/** A thread's name; until the message it answers was read, or where that is gone, the time of it, which its id begins with. */
export function showThread(thread) {
  if (!isAnswer(thread)) return thread;
  const beginning = beginnings.value.get(thread);
  if (beginning === undefined) want(thread);
  return beginning ? `${beginning.from}: ${oneLine(beginning.body).slice(0, SHOWN)}` : `Thread at ${showSeconds(timeOf(thread))}`;
}

/** When the message was written that a thread answers. */
export const timeOf = (thread) => [...thread.slice(4, 14)].reduce((sum, sign) => sum * 32 + DIGITS.indexOf(sign), 0);

/** Text in one line, without the signs of Markdown. */
export const oneLine = (text) => text.replace(/```\w*|^[#>|\s-]+/gm, " ").replace(/[`*]+/g, "").replace(/\s+/g, " ").trim();

function want(thread) {
  if (asked.has(thread)) return;
  asked.add(thread);
  wanted.push(thread);
  if (reading < AT_ONCE) readNext();
}

async function readNext() {
  reading += 1;
  for (let thread = wanted.shift(); thread !== undefined; thread = wanted.shift()) {
    try {
      keep(thread, await get(`messages/${part(thread)}`));
    } catch (error) {
      if (error.isAway) asked.delete(thread); // the next look asks again
      else keep(thread, null);
    }
  }
  reading -= 1;
}

const keep = (thread, message) => { beginnings.value = new Map([...beginnings.value, [thread, message]]); };
