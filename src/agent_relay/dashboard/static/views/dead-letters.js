// Dead letters: messages that could not be delivered, why, and another try.

import { html, loadStyle, useEffect, useState } from "../lib/ui.js";
import { get, part, post } from "../lib/api.js";
import { plural, showAgo, showMoment } from "../lib/format.js";
import { onEvents, onReset } from "../lib/live.js";
import { useReading } from "../lib/reading.js";
import { select, selection } from "../lib/router.js";
import { readNumbers, status } from "../lib/store.js";
import { orSay, say } from "../lib/toasts.js";
import { Avatar } from "../parts/avatar.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { confirm } from "../parts/dialog.js";
import { Empty, Failed, Loading } from "../parts/empty.js";
import { Tip } from "../parts/tooltip.js";

await loadStyle("css/dead-letters.css");

const MOST = 200;
const REASONS = { DELIVERY_TIMEOUT: "Not acknowledged in time", QUEUE_FULL: "The queue was full", REJECTED: "Refused", AGENT_OFFLINE: "The agent was offline" };

export default function DeadLetters() {
  const count = status.value?.deadLetters ?? 0;
  const { value, error, again } = useReading(() => get("dead-letters", { limit: MOST }), [count]);
  const [gone, setGone] = useState(new Set());
  useEffect(() => onReset(again), []);
  useEffect(() => onEvents(["message.*"], readNumbers), []);
  const letters = (value?.deadLetters ?? []).filter((letter) => !gone.has(keyOf(letter)));

  const retry = (letter) => orSay(async () => {
    await post(`dead-letters/${part(letter.messageId)}/retry`);
    setGone((now) => new Set([...now, ...letters.filter((each) => each.messageId === letter.messageId).map(keyOf)]));
    say(`Sent again to ${letter.dead.to}.`, { tone: "success" });
    readNumbers();
  });
  const retryAll = async () => {
    const ids = [...new Map(letters.map((letter) => [letter.messageId, letter])).values()];
    const text = "Each is sent again as a new message. Offline agents get them when they come back.";
    if (!(await confirm({ title: `Send ${plural(ids.length, "message")} again?`, text, action: "Send again" }))) return;
    for (const letter of ids) await retry(letter);
  };

  return html`<div class="view"><header class="view-head"><h1>Dead letters</h1>
      ${letters.length > 0 && html`<span class="faint">${plural(letters.length, "message")}</span>`}
      <div class="tools">${letters.length > 1 && html`<${Button} small icon="refresh" onClick=${retryAll}>Send all again<//>`}</div></header>
    <div class="view-body letters">
      ${error && html`<${Failed} error=${error} again=${again} />`}
      ${!error && value === null && html`<${Loading} />`}
      ${!error && value !== null && !letters.length && html`<${Empty} icon="archive" title="No dead letters">
        <p>Messages that were not delivered in time end up here. You can send them again.</p><//>`}
      ${letters.length > 0 && html`<ul class="card">${letters.map((letter) => html`<li key=${keyOf(letter)}>
        <${Letter} letter=${letter} retry=${() => retry(letter)} /></li>`)}</ul>`}
    </div></div>`;
}

const keyOf = ({ messageId, dead }) => `${messageId} ${dead.to}`;

function Letter({ letter, retry }) {
  const { messageId, from, body, dead, ts, kind } = letter;
  const isChosen = selection.value?.kind === "message" && selection.value.id === messageId;
  return html`<div class="letter" aria-current=${isChosen ? "true" : undefined}>
    <${Avatar} name=${from} size=${28} />
    <button type="button" class="grow letter-main" onClick=${() => select("message", messageId)}>
      <span class="line"><strong class="clip">${from}</strong><span class="faint">→</span><strong class="clip">${dead.to}</strong>
        ${kind !== "message" && html`<${Badge}>${kind}<//>`}<${Badge} tone="danger">${REASONS[dead.code] ?? dead.code}<//></span>
      <span class="letter-body">${body}</span>
    </button>
    <${Tip} text=${`Written ${showMoment(ts)}, expired ${showMoment(dead.at)}`}>
      <time class="faint tabular" tabindex="0" datetime=${new Date(dead.at).toISOString()}>${showAgo(dead.at)}</time><//>
    <${Button} small icon="refresh" onClick=${retry} aria-label=${`Send again to ${dead.to}`}>Send again<//>
  </div>`;
}
