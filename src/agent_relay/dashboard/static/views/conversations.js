// What was said: the list of conversations, the messages of one, and where one writes.

import { classes, html, useCallback, useEffect, useMemo, useRef, useState } from "../lib/ui.js";
import { afterQuiet } from "../lib/frames.js";
import { plural } from "../lib/format.js";
import { addShortcut, addShortcuts } from "../lib/keys.js";
import { wordsOf } from "../lib/markdown.js";
import { change, select, selection } from "../lib/router.js";
import { agents, isReady, isYou } from "../lib/store.js";
import { Composer } from "../conversations/composer.js";
import { ConversationList, followConversations } from "../conversations/conversation-list.js";
import { copyText, linkTo } from "../conversations/copying.js";
import { answer, draftOf } from "../conversations/drafts.js";
import { exportAs } from "../conversations/exporting.js";
import { Feed } from "../conversations/feed.js";
import { FirstSteps } from "../conversations/first-steps.js";
import { Members, TopicLine } from "../conversations/members.js";
import { MessageRow } from "../conversations/message-row.js";
import { ToFirstNew, toFirstNew, useMarking, useNews } from "../conversations/new-messages.js";
import { placeOf } from "../conversations/place.js";
import { HINT } from "../conversations/search.js";
import { Button } from "../parts/button.js";
import { Empty, Failed, Loading } from "../parts/empty.js";
import { Icon } from "../parts/icon.js";
import { Menu } from "../parts/menu.js";
import { VirtualList } from "../parts/virtual-list.js";

const SEARCH_MS = 220;
const shareLater = async (place) => (await import("../conversations/sharing.js")).share(place); // few need it

export default function Conversations({ route }) {
  const place = placeOf(route);
  const feed = useMemo(() => new Feed(place), [place.id]);
  const list = useRef(null);
  const search = useRef(null);
  const [isListed, setListed] = useState(false); // on small screens the list is in front of the messages, when it is asked for
  const { at } = route.query;
  useEffect(followConversations, []);
  useEffect(() => () => feed.close(), [feed]);
  useEffect(() => { at ? feed.around(at).then(() => list.current?.toKey(at)) : feed.toNewest(); }, [feed, at]);
  useEffect(() => setListed(false), [place.home]);
  const reply = useCallback((message) => message && answer(draftOf(place), message), [place.home]);
  useEffect(() => addShortcuts([
    ["/", "Search", () => search.current.focus()],
    ["j", "Next message", () => step(feed, list, 1)],
    ["k", "Previous message", () => step(feed, list, -1)],
    ["r", "Reply to the selected message", () => reply(chosen(feed))],
    ["y", "Copy the selected message", () => chosen(feed) && copyText(chosen(feed).body)],
    ["e", "Jump to the newest message", () => toNewest(feed, list, at)],
  ].map((entry) => [...entry, { group: "Conversations" }])), [feed, at, reply]);
  return html`<div class=${classes("view conversations", isListed && "shows-list")}>
    <${ConversationList} place=${place} />
    <section class="conversation-view" aria-label=${place.title}>
      <${Head} place=${place} field=${search} isListed=${isListed} onList=${() => setListed(!isListed)} />
      <${Messages} place=${place} feed=${feed} list=${list} at=${at} onReply=${reply} />
      <${Composer} key=${place.home} place=${place} last=${place.search ? undefined : feed.items.value.at(-1)} />
    </section>
  </div>`;
}

/** The selected message, or null. */
const chosen = (feed) => feed.items.value.find((each) => selection.value?.kind === "message" && each.messageId === selection.value.id) ?? null;

function step(feed, list, by) {
  const items = feed.items.value;
  const now = items.findIndex((each) => each.messageId === selection.value?.id);
  const next = items[now < 0 ? items.length - 1 : now + by];
  if (!next) return;
  change({ select: `message:${next.messageId}` }, { replace: true });
  list.current?.toKey(next.messageId, { flash: false });
}

function toNewest(feed, list, at) {
  if (at) change({ at: null });
  else if (feed.hasNewer.value) feed.toNewest();
  list.current?.toEnd();
}

function Head({ place, field, isListed, onList }) {
  const [written, setWritten] = useState(place.search);
  const asked = useRef(place.search); // the address follows what is written, once nothing was typed for a moment
  const find = useMemo(() => afterQuiet(SEARCH_MS, (words) => {
    asked.current = words;
    change({ search: words || null, at: null }, { replace: true });
  }), []);
  useEffect(() => {
    if (place.search === asked.current) return;
    asked.current = place.search; // by a link, or back in the history
    setWritten(place.search);
  }, [place.search]);
  const leave = (event) => {
    if (event.key !== "Escape") return;
    setWritten("");
    event.currentTarget.blur();
    find("");
  };
  const write = (event) => {
    setWritten(event.currentTarget.value);
    find(event.currentTarget.value.trim());
  };
  return html`<header class="view-head">
    <${Button} kind="quiet" icon="panel" label="Conversations" class="to-list" aria-expanded=${isListed} onClick=${onList} />
    <span class="sign"><${Icon} name=${place.icon} /></span><h1 class="clip">${place.title}</h1>
    ${place.type === "agent" && selection.value?.id !== place.key
      && html`<${Button} kind="quiet" small icon="panel" label=${`About ${place.key}`} onClick=${() => select("agent", place.key)} />`}
    ${place.type === "channel" && html`<${TopicLine} channel=${place.key} /><${Members} channel=${place.key} />`}
    <div class="tools">
      <label class="search"><${Icon} name="search" size=${15} /><span class="sr-only">Search in ${place.title}</span>
        <input ref=${field} type="search" placeholder="Search" title=${HINT} value=${written} onKeyDown=${leave} onInput=${write} /><kbd>/</kbd></label>
      <${Menu} label="Export" icon="download" items=${[
        { label: "Share as one HTML file…", icon: "share", run: () => shareLater(place) },
        { label: "Export as Markdown", icon: "download", run: () => exportAs("markdown", place) },
        { label: "Export as JSON", icon: "download", run: () => exportAs("json", place) },
        { label: "Copy link to this view", icon: "link", run: () => copyText(location.href) },
      ]} />
    </div>
  </header>`;
}

function Messages({ place, feed, list, at, onReply }) {
  const items = feed.items.value;
  const words = useMemo(() => wordsOf(place.words), [place.words]);
  const [isAtEnd, setAtEnd] = useState(true);
  const news = useNews(place, feed);
  useMarking(place, feed, isAtEnd, at);
  useEffect(() => addShortcut("f", "Jump to the first new message", () => toFirstNew(place, feed, list, news), { group: "Conversations" }), [place.id, news]);
  const render = useCallback((message, before) => html`
    <${MessageRow} message=${message} before=${before} words=${words} place=${place} news=${news} onReply=${onReply} />
    ${place.search && html`<a class="in-context" href=${linkTo(message)}>Show in context</a>`}`, [place.id, news, onReply]);
  if (feed.error.value && !items.length) return html`<${Failed} error=${feed.error.value} again=${() => feed.toNewest()} />`;
  if (!items.length) return feed.isReading.value ? html`<${Loading} />` : html`<${Nothing} place=${place} />`;
  return html`<div class="messages">
    ${place.search && html`<p class="found" role="status">
      ${plural(items.length, "message")}${feed.hasOlder.value ? " and more" : ""} with “${place.search}”</p>`}
    <${ToFirstNew} place=${place} feed=${feed} list=${list} news=${news} />
    <${VirtualList} key=${place.id} items=${items} keyOf=${(message) => message.messageId} render=${render} stick="bottom" estimate=${72}
      label="Messages" handle=${list} onNearStart=${() => feed.readOlder()} onNearEnd=${() => feed.readNewer()} onEnd=${setAtEnd}
      class="message-list" />
    ${(!isAtEnd || feed.hasNewer.value) && html`<${Button} small icon="chevron" class="to-newest" onClick=${() => toNewest(feed, list, at)}>
      ${feed.unseen.value ? plural(feed.unseen.value, "new message") : "Newest"}<//>`}
  </div>`;
}

function Nothing({ place }) {
  if (place.search) {
    return html`<${Empty} icon="search" title="Nothing found"><p>No message here contains all of these words.</p><//>`;
  }
  const isAlone = isReady.value && ![...agents.value.values()].some(({ name }) => !isYou(name));
  if (isAlone && place.type === "all") return html`<${FirstSteps} />`;
  return html`<${Empty} icon="messages" title="No messages here yet">
    <p>Write the first message below, or let an agent write <code>->relay:Bob hello</code>.</p><//>`;
}
