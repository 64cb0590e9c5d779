// Which conversation the page shows: all of it, one agent's, a pair's, a channel's, a thread's, or what was found by a search.

import { isYou } from "../lib/store.js";
import { parseSearch } from "./search.js";
import { showThread } from "./threads.js";

/** The conversation of a route: `home` names it whatever is searched for in it, `query` is what the API is asked, `matches` whether a new message belongs to it, `to` who gets what is
 * written there (null: whoever spoke last). */
export function placeOf({ path, query }) {
  const [type = "all", key = ""] = path;
  const place = (Object.hasOwn(kinds, type) ? kinds[type] : kinds.all)(key);
  const { search = "" } = query;
  const home = [place.type, place.key].join("\u0000");
  const id = [home, search].join("\u0000");
  const asked = parseSearch(search);
  return { ...place, home, id, search, words: asked.words, query: { ...place.query, ...asked.query }, matches: search ? () => false : place.matches };
}

const kinds = {
  all: () => ({ type: "all", key: "", title: "All messages", icon: "messages", query: {}, matches: () => true, to: [] }),
  agent: (key) => ({
    type: "agent", key, title: showName(key), icon: "robot", query: { with: key }, matches: (message) => isWith(message, key),
    to: isYou(key) ? [] : [key],
  }),
  pair(key) {
    const names = key.split(",");
    return {
      type: "pair", key, title: names.map(showName).join(" and "), icon: "users", query: { between: key },
      matches: (message) => names.includes(message.from) && names.includes(message.to), to: names.filter((name) => !isYou(name)),
    };
  },
  channel: (key) => ({
    type: "channel", key, title: key, icon: "hash", query: { to: key }, matches: (message) => message.to === key, to: [key],
  }),
  everyone: () => ({
    type: "everyone", key: "", title: "To everyone", icon: "users", query: { to: "*" }, matches: (message) => message.to === "*", to: ["*"],
  }),
  thread: (key) => ({
    type: "thread", key, title: showThread(key), icon: "thread", query: { thread: key }, matches: (message) => message.thread === key || message.messageId === key,
    to: null, thread: key,
  }),
};

const isWith = (message, name) => message.from === name || message.to === "*" || message.to.split(",").some((each) => each.trim() === name);

export const showName = (name) => (isYou(name) ? "You" : name);

/** To whom it was said, in words. */
export function showTo(message) {
  if (message.to === "*") return "everyone";
  if (!message.to) return message.topic ?? "nobody";
  return message.to.split(",").map((name) => showName(name.trim())).join(", ");
}

/** The path of the conversation that a message belongs to first: its channel, its pair, else everything. */
export function pathOf(message) {
  if (message.to.startsWith("#")) return ["channel", message.to];
  if (message.to === "*") return ["everyone"];
  if (message.to && !message.to.includes(",")) return ["pair", [message.from, message.to].sort().join(",")];
  return message.thread ? ["thread", message.thread] : ["all"];
}
