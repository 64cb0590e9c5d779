// What is new in a conversation since it was last read: where it begins, how much it is, and the way there.

import { html, signal, useEffect, useRef } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { isPageSeen } from "../lib/screen.js";
import { markSeen, seenAt } from "../lib/seen.js";
import { isYou, status } from "../lib/store.js";
import { orSay } from "../lib/toasts.js";
import { Button } from "../parts/button.js";

/** The divider that was seen last: nobody needs to be led there any more. */
const seenDivider = signal(null);

/** { since, until }: what of a conversation is new, as it was opened; null where nothing is known yet, or nothing is new. */
export function useNews(place, feed) {
  const opened = useRef({ feed: null, since: null, until: null });
  if (opened.current.feed !== feed) opened.current = { feed, since: null, until: null };
  const found = opened.current;
  const items = feed.items.value;
  if (found.since === null) found.since = place.type === "agent" ? seenAt("pair", `${place.key},${status.value?.you ?? ""}`) : seenAt(place.type, place.key);
  if (found.until === null && !feed.isReading.value && items.length) found.until = items.at(-1).ts;
  const hasMarks = place.type !== "all" && !place.search;
  return hasMarks && found.since && found.until > found.since ? found : null;
}

/** Whether a message is the first that is new; `before` is the one above it. */
export const isFirstNew = (message, before, news) => news !== null && message.ts > news.since && message.ts <= news.until
  && !isYou(message.from) && before !== undefined && before.ts <= news.since;

/** What is seen to its end is read. */
export function useMarking(place, feed, isAtEnd, at) {
  const last = feed.items.value.at(-1);
  const isRead = isAtEnd && !at && !place.search && !feed.hasNewer.value && !feed.isReading.value && isPageSeen.value;
  useEffect(() => { if (isRead && last) markSeen(place, last.ts); }, [isRead, last?.messageId]);
}

export function Divider({ id }) {
  const line = useRef(null);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) seenDivider.value = id; });
    observer.observe(line.current);
    return () => observer.disconnect();
  }, [id]);
  return html`<div class="day new-from" ref=${line} data-new-from><span>New</span></div>`;
}

/** Above the list, while what is new begins further up than is seen. */
export function ToFirstNew({ place, feed, list, news }) {
  if (!news) return null;
  const items = feed.items.value;
  const fresh = items.filter((each) => each.ts > news.since && each.ts <= news.until && !isYou(each.from));
  const isWhole = !feed.hasOlder.value || items[0]?.ts <= news.since;
  if (!fresh.length || (isWhole && seenDivider.value === fresh[0].messageId)) return null;
  return html`<${Button} small icon="chevron" class="to-first-new" onClick=${() => toFirstNew(place, feed, list, news)}>
    ${isWhole ? plural(fresh.length, "new message") : `More than ${plural(fresh.length, "new message")}`}<//>`;
}

export const toFirstNew = (place, feed, list, news) => news && orSay(async () => {
  const items = feed.items.value;
  const isWhole = !feed.hasOlder.value || items[0]?.ts <= news.since;
  const first = isWhole ? items.find((each) => each.ts > news.since && !isYou(each.from))
    : (await get("messages", { ...place.query, since: news.since + 1, order: "oldest", limit: 1 })).messages[0];
  if (!first) return;
  await feed.around(first.messageId);
  list.current?.toKey(first.messageId, { flash: false });
});
