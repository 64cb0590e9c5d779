// What is written into a search field: words, and filters such as `from:Bob to:#build after:2026-03-01 before:yesterday topic:ci in:passkeys kind:action`.

import { KINDS } from "./kinds.js";

const FILTERS = /(?:^|\s)(from|to|after|before|topic|in|kind):(?:"([^"]*)"(?!\S)|(\S+))/gi;

/** Said where one searches. */
export const HINT = "Words of messages, and from: to: after: before: topic: in: kind:";

/** { query, words }: what the API is asked, and the words alone. A filter that cannot be read is left among the words. */
export function parseSearch(text, now = Date.now()) {
  const query = {};
  const words = text.replace(FILTERS, (whole, name, quoted, plain) => {
    const value = quoted ?? plain;
    const found = readers[name.toLowerCase()](value, now);
    if (!found) return whole;
    Object.assign(query, found);
    return " ";
  }).replace(/\s+/g, " ").trim();
  return { query: { ...query, ...(words && { search: words }) }, words };
}

const moment = (field) => (value, now) => {
  const day = dayOf(value, now);
  return day === null ? null : { [field]: day };
};

const readers = {
  from: (name) => ({ from: name }),
  to: (name) => ({ to: name === "everyone" ? "*" : name }),
  topic: (topic) => ({ topic }),
  in: (thread) => (thread.startsWith("#") ? { to: thread } : { thread }),
  kind: (kind) => (KINDS.includes(kind.toLowerCase()) ? { kind: kind.toLowerCase() } : null),
  after: moment("since"), // from that day on
  before: moment("until"),
};

/** The beginning of a day here: `today`, `yesterday`, `2026-03-01`, `7d` (so many days ago). */
function dayOf(text, now) {
  const today = new Date(now).setHours(0, 0, 0, 0);
  const word = text.toLowerCase();
  if (word === "today") return today;
  if (word === "yesterday") return new Date(new Date(today).setDate(new Date(today).getDate() - 1)).getTime();
  const back = /^(\d{1,4})d$/.exec(word);
  if (back) return new Date(new Date(today).setDate(new Date(today).getDate() - Number(back[1]))).getTime();
  const found = /^(\d{4})-(\d{2})-(\d{2})$/.exec(word);
  if (!found) return null;
  const [, year, month, day] = found.map(Number);
  const made = new Date(year, month - 1, day);
  return made.getMonth() === month - 1 && made.getDate() === day ? made.getTime() : null;
}
