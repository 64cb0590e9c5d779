// The conversations there are: everything, channels, threads and pairs, each with its last words.

import { classes, html, memo, signal } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { plural, showAgo } from "../lib/format.js";
import { atMostEvery } from "../lib/frames.js";
import { onEvents, onReset } from "../lib/live.js";
import { link } from "../lib/router.js";
import { Avatar } from "../parts/avatar.js";
import { Count } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { Icon } from "../parts/icon.js";
import { useRoving } from "../parts/roving.js";
import { joined, showNewChannel } from "./members.js";
import { pathOf, showName } from "./place.js";
import { fromEvent } from "./receipts.js";
import { oneLine, showThread } from "./threads.js";
import { showUnread, unreadOf } from "./unread.js";

const MOST = 60; // of each kind; older ones are found by a search
const READ_MS = 3_000;
const WHOLE_MS = 60_000; // what the stream tells is put in; now and then the whole is read, for what was said before
const SHOWN = 120; // characters of the last words
const WANTED = 300;

const conversations = signal(null);

const read = atMostEvery(READ_MS, async () => {
  try {
    conversations.value = (await get("conversations", { limit: WANTED })).conversations;
  } catch (error) {
    if (!error.isAway) console.error(error);
  }
});

const readWhole = atMostEvery(WHOLE_MS, read);

/** What was just said, put in its place; the first words of a conversation begin one. */
function hear(events) {
  const list = [...(conversations.value ?? [])];
  for (const event of events) {
    const message = fromEvent(event);
    const [type, key = ""] = pathOf(message);
    if (type === "all") read(); // to several, or under a topic: the daemon knows what it belongs to
    const places = [...(type === "all" ? [] : [[type === "everyone" ? "all" : type, key]]), ...(message.thread && type !== "thread" ? [["thread", message.thread]] : [])];
    for (const [kind, name] of places) {
      const at = list.findIndex((each) => each.type === kind && (kind === "all" || isSame(each.key, name, kind)));
      const { messageId, from, to, kind: meant, body, ts } = message;
      const last = { messageId, from, to, kind: meant, body: body.slice(0, WANTED), ts };
      if (at < 0) {
        list.unshift({ type: kind, key: name, count: 1, last });
        continue;
      }
      if (message.messageId <= list[at].last.messageId) continue; // it was read already; ids are in the order of time
      const [found] = list.splice(at, 1);
      list.unshift({ ...found, count: found.count + 1, last });
    }
  }
  if (conversations.value) conversations.value = list;
  readWhole();
}

/** A pair is the same whoever of the two is named first. */
const isSame = (one, other, type) => (type === "pair" ? one.split(",").sort().join(",") === other.split(",").sort().join(",") : one === other);

/** As they were read last; none before that. */
export const known = () => conversations.value ?? [];

let isFollowing = false;

/** Reads the list now, and again when something was said. */
export function followConversations() {
  read();
  if (isFollowing) return;
  isFollowing = true;
  onEvents(["message.exchanged"], hear);
  onReset(read);
}

export const ConversationList = memo(List, (before, after) => before.place.id === after.place.id);

function List({ place }) {
  const list = useRoving(".row");
  const [everyone] = of("all");
  return html`<nav class="conversations-list" aria-label="Conversations" ref=${list}>
    <${Entry} path=${["all"]} place=${place} icon="messages" title="All messages" />
    ${everyone && html`<${Entry} path=${["everyone"]} place=${place} icon="users" title="To everyone" found=${everyone} />`}
    ${sections.map(({ type, heading, icon, titleOf, add }) => html`<${Section} key=${type} heading=${heading} found=${of(type)} add=${add}>
      ${(each) => html`<${Entry} key=${each.key} path=${[type, each.key]} place=${place} icon=${icon} title=${titleOf(each.key)} found=${each} />`}
    <//>`)}
  </nav>`;
}

const sections = [
  { type: "channel", heading: "Channels", icon: "hash", titleOf: (key) => key.replace(/^#/, ""), add: { label: "Join a channel", run: showNewChannel } },
  { type: "thread", heading: "Threads", icon: "thread", titleOf: showThread },
  { type: "pair", heading: "Direct", icon: null, titleOf: (key) => key.split(",").map(showName).join(", ") },
];

function of(type) {
  const found = (conversations.value ?? []).filter((each) => each.type === type);
  const isKnown = new Set(found.map((each) => each.key));
  const silent = type === "channel" ? joined().filter((key) => !isKnown.has(key)).map((key) => ({ type, key, count: 0, last: null })) : [];
  return [...found, ...silent].slice(0, MOST);
}

function Section({ heading, found, add, children }) {
  if (!found.length && !add) return null;
  return html`<section><h2 class="heading">${heading}<span class="tabular">${found.length}</span>
    ${add && html`<${Button} kind="quiet" small icon="plus" label=${add.label} onClick=${add.run} />`}</h2>${found.map(children)}</section>`;
}

function Entry({ path: [type, key = ""], place, icon, title, found }) {
  const isHere = place.type === type && place.key === key;
  const unread = found && !isHere ? unreadOf({ ...found, type, key }) : 0;
  return html`<a class=${classes("row conversation", unread !== 0 && "unread")} href=${link("conversations", [type, ...(key ? [key] : [])])} aria-current=${isHere ? "true" : undefined}>
    ${icon ? html`<span class="sign"><${Icon} name=${icon} size=${15} /></span>` : html`<${Faces} names=${key.split(",")} />`}
    <span class="grow">
      <span class="line"><span class="clip title">${title}</span>${unread > 0 && html`<${Count} value=${showUnread(unread)} tone="accent" label="new" />`}${found?.last && html`<${Age} ...${found} />`}</span>
      ${found?.last && html`<span class="clip last" dir="auto">${icon && `${showName(found.last.from)}: `}${oneLine(found.last.body).slice(0, SHOWN)}</span>`}
    </span>
  </a>`;
}

const Age = ({ count, last }) => html`<span class="ago tabular" title=${plural(count, "message")}>${showAgo(last.ts)}</span>`;

const Faces = ({ names }) => html`<span class="faces">
  ${names.slice(0, 2).map((name) => html`<${Avatar} key=${name} name=${showName(name)} size=${17} />`)}
</span>`;
