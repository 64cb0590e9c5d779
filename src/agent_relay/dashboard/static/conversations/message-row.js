// One message: who said what to whom, how it is meant, and what became of it.

import { classes, html, signal, useEffect, useComputed, useLayoutEffect, useRef, useState } from "../lib/ui.js";
import { showDay, showMoment, showTime } from "../lib/format.js";
import { highlightIn } from "../lib/highlight.js";
import { askBeforeLeaving } from "../lib/links.js";
import { renderMarkdown } from "../lib/markdown.js";
import { link, route, select, selected } from "../lib/router.js";
import { isPhone } from "../lib/screen.js";
import { Slot } from "../lib/slots.js";
import { Avatar } from "../parts/avatar.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { Icon } from "../parts/icon.js";
import { copyLink, copyText } from "./copying.js";
import { Divider, isFirstNew } from "./new-messages.js";
import { showName, showTo } from "./place.js";
import { Ticks } from "./receipts.js";
import { showThread } from "./threads.js";

const TOGETHER_MS = 4 * 60_000; // so soon after another of the same sender, it is shown as its continuation
const TALL_PX = 420;
const LONG = 700; // characters, or lines of which there are a dozen: only such a text is measured
const kinds = new Map([["action", ["bolt", "info"]], ["state", ["clock", "neutral"]], ["thinking", ["thought", "accent"]]]);

const touched = signal(null); // the message whose tools a phone shows

/** `before` is the message above it, `words` are marked, `place` the conversation that is shown, `news` what of it is new. */
export function MessageRow({ message, before, words, place, news, onReply }) {
  const isNewDay = !before || showDay(before.ts) !== showDay(message.ts);
  const isNew = isFirstNew(message, before, news);
  const isSame = !isNewDay && !isNew && before.from === message.from && before.to === message.to && before.kind === message.kind
    && before.thread === message.thread && before.topic === message.topic && message.ts - before.ts < TOGETHER_MS;
  const isChosen = useComputed(() => selected.value === `message:${message.messageId}`).value;
  const [isNear, setNear] = useState(false);
  const kind = kinds.has(message.kind) ? message.kind : "message";
  const isTouched = isPhone.value && touched.value === message.messageId;
  const leave = ({ currentTarget, relatedTarget }) => {
    if (!currentTarget.contains(relatedTarget)) setNear(false); // from one tool to the next, they stay
  };
  const open = (event) => {
    if (event.target.closest("a, button, pre") || getSelection().toString()) return;
    if (isPhone.value) touched.value = message.messageId;
    else select("message", message.messageId);
  };
  return html`${isNewDay && html`<div class="day"><span>${showDay(message.ts)}</span></div>`}${isNew && html`<${Divider} id=${message.messageId} />`}
    <article class=${classes("message", `kind-${kind}`, isSame && "same", isChosen && "chosen", isTouched && "touched")}
      aria-label=${`${showName(message.from)} to ${showTo(message)}, ${showMoment(message.ts)}`} data-message=${message.messageId} onClick=${open}
      onPointerEnter=${() => setNear(true)} onPointerLeave=${leave} onFocusIn=${() => setNear(true)} onFocusOut=${leave}>
      ${isSame ? html`<time class="small-time tabular">${showTime(message.ts)}</time>` : html`<${Avatar} name=${showName(message.from)} size=${30} />`}
      <div class="message-main">
        ${!isSame && html`<${Head} message=${message} place=${place} />`}
        <${Body} message=${message} words=${words} />
      </div>
      <div class="message-end"><${Ticks} message=${message} /></div>
      ${(isNear || isChosen || isTouched) && html`<${Tools} message=${message} onReply=${onReply} />`}
    </article>`;
}

function Head({ message, place }) {
  const [icon, tone] = kinds.get(message.kind) ?? [null, "outline"];
  return html`<header class="message-head">
    <a class="from" href=${link("conversations", ["agent", message.from], { select: `agent:${message.from}` })}>${showName(message.from)}</a>
    <span class="arrow" aria-label="to">→</span><${To} message=${message} />
    ${message.kind !== "message" && html`<${Badge} tone=${tone} icon=${icon}>${message.kind}<//>`}
    ${message.thread && place.type !== "thread" && html`<a class="badge" href=${link("conversations", ["thread", message.thread])}>
      <${Icon} name="thread" size=${12} /><span class="clip">${showThread(message.thread)}</span></a>`}
    ${message.to && message.topic && html`<${Topic} name=${message.topic} />`}
    <time dateTime=${new Date(message.ts).toISOString()} title=${showMoment(message.ts)}>${showTime(message.ts)}</time>
  </header>`;
}

/** Leads to what else was said under it, in the conversation that is shown. A topic has no spaces. */
function Topic({ name }) {
  const { path } = route.value;
  return html`<a class="badge topic" href=${link("conversations", path, { search: `topic:${name}` })} title=${`Topic ${name}: show its messages`}>
    <${Icon} name="tag" size=${12} /><span class="sr-only">topic </span><bdi class="clip">${name}</bdi></a>`;
}

function To({ message }) {
  const { to, topic } = message;
  if (!to && topic) return html`<${Topic} name=${topic} />`; // to whoever listens
  if (to.startsWith("#")) return html`<a class="to" href=${link("conversations", ["channel", to])}>${to}</a>`;
  if (to === "*") return html`<a class="to" href=${link("conversations", ["everyone"])}>everyone</a>`;
  if (!to || to.includes(",")) return html`<span class="to clip">${showTo(message)}</span>`;
  return html`<a class="to" href=${link("conversations", ["pair", [message.from, to].sort().join(",")])}>${showName(to)}</a>`;
}

function Body({ message, words }) {
  const place = useRef(null);
  const [isOpen, setOpen] = useState(false);
  const [isTall, setTall] = useState(false);
  useLayoutEffect(() => setTall(mayBeTall(message.body) && place.current.scrollHeight > TALL_PX + 60), [message.body]);
  useEffect(() => { highlightIn(place.current); }, [message.body, words]);
  const inner = { __html: renderMarkdown(message.body, words) }; // cleaned there
  return html`<div class=${classes("prose", isTall && !isOpen && "cut")} ref=${place}
      onClick=${askBeforeLeaving} onAuxClick=${askBeforeLeaving} dangerouslySetInnerHTML=${inner} />
    ${isTall && html`<button type="button" class="more-text" onClick=${() => setOpen(!isOpen)}>${isOpen ? "Show less" : "Show all"}</button>`}
    ${message.truncated && html`<p class="faint">This message is truncated.</p>`}`;
}

const mayBeTall = (text) => text.length > LONG || text.split("\n", 13).length > 12;

function Tools({ message, onReply }) {
  return html`<div class="message-tools">
    <${Button} kind="quiet" small icon="reply" label="Reply" onClick=${() => onReply(message)} />
    <${Button} kind="quiet" small icon="copy" label="Copy text" onClick=${() => copyText(message.body)} />
    <${Button} kind="quiet" small icon="link" label="Copy link" onClick=${() => copyLink(message)} />
    <${Slot} place="message-actions" message=${message} />
    <${Button} kind="quiet" small icon="panel" label="Details" onClick=${() => select("message", message.messageId)} />
  </div>`;
}
