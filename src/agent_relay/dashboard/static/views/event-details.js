// One event in the panel of details: what it says in words, and its payload.

import { html } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { showMoment } from "../lib/format.js";
import { useReading } from "../lib/reading.js";
import { link } from "../lib/router.js";
import { addTo } from "../lib/slots.js";
import { copyText } from "../conversations/copying.js";
import { Avatar } from "../parts/avatar.js";
import { Button } from "../parts/button.js";
import { Empty, Failed, Loading } from "../parts/empty.js";
import { describe, groupOf } from "./event-kinds.js";

function EventDetails({ selection }) {
  const seq = Number(selection.id);
  const { value, error, again } = useReading(() => get("events", { cursor: String(Math.max(0, seq - 1)), limit: 1 }), [seq]);
  if (error) return html`<${Failed} error=${error} again=${again} />`;
  if (!value) return html`<${Loading} />`;
  const event = value.events[0];
  if (event?._seq !== seq) return html`<${Empty} icon="timeline" title="No longer available"><p>Events are only kept for some days.</p><//>`;
  return html`<${Shown} event=${event} />`;
}

function Shown({ event }) {
  const { type, _seq, _ts, _agentName, _sessionId, ...payload } = event;
  const text = JSON.stringify(payload, null, 2);
  return html`<div class="stack">
      <div class="line">${_agentName && html`<${Avatar} name=${_agentName} size=${28} />`}
        <div class="grow"><strong class="clip">${_agentName || "The relay"}</strong><div class="faint mono">${type}</div></div></div>
      <p class="note event-says" style=${{ borderLeft: `3px solid var(${groupOf(type).colour})` }}>${describe(event)}</p>
    </div>
    <div class="line wrap">
      ${event.messageId && html`<${Button} small icon="messages" href=${linkTo(event.messageId)}>Show the message<//>`}
      ${_sessionId && html`<${Button} small icon="play" href=${link("replay", ["session", _sessionId], { at: _ts })}>Replay from here<//>`}
      <${Button} small icon="copy" onClick=${() => copyText(JSON.stringify(event, null, 2))}>Copy<//>
    </div>
    <section><h3>Event</h3><dl class="facts">
      <dt>When</dt><dd>${showMoment(_ts)}</dd><dt>Number</dt><dd class="tabular">${_seq}</dd>
      ${_sessionId && html`<dt>Session</dt><dd class="mono">${_sessionId}</dd>`}</dl></section>
    <section><h3>Payload</h3><pre class="payload" tabindex="0">${text}</pre></section>`;
}

const linkTo = (messageId) => link("conversations", ["all"], { at: messageId, select: `message:${messageId}` });

addTo("details", EventDetails, { kind: "event" });
