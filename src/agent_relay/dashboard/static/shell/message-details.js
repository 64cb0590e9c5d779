// About one message: who it went to, and every step of its life.

import { html, useEffect } from "../lib/ui.js";
import { get, part } from "../lib/api.js";
import { showDuration, showMoment } from "../lib/format.js";
import { onEvents } from "../lib/live.js";
import { useReading } from "../lib/reading.js";
import { link } from "../lib/router.js";
import { Slot } from "../lib/slots.js";
import { Badge } from "../parts/badge.js";
import { Failed, Loading } from "../parts/empty.js";
import { stepText } from "../conversations/receipts.js";

const copiesOf = ({ recipients = [] }) => recipients.filter((each) => each.copy).map((each) => each.name).join(", ");

export function MessageDetails({ id }) {
  const message = useReading(() => get(`messages/${part(id)}`), [id]);
  const life = useReading(() => get(`messages/${part(id)}/timeline`), [id]);
  useEffect(() => onEvents(["message.delivered"], (events) => {
    if (events.some((event) => event.messageId === id)) {
      message.again();
      life.again();
    }
  }), [id]);
  if (message.error) return html`<${Failed} error=${message.error} again=${message.again} />`;
  if (!message.value) return html`<${Loading} />`;
  const found = message.value;
  return html`<section><dl class="facts">
      <dt>From</dt><dd><a href=${link("conversations", ["agent", found.from], { select: `agent:${found.from}` })}>${found.from}</a></dd>
      <dt>To</dt><dd>${found.to || "–"}</dd>
      ${copiesOf(found) && html`<dt>Copies to</dt><dd>${copiesOf(found)}</dd>`}
      <dt>Kind</dt><dd><${Badge}>${found.kind}<//></dd>
      <dt>Sent</dt><dd>${showMoment(found.ts)}</dd>
      ${found.topic && html`<dt>Topic</dt><dd>${found.topic}</dd>`}
      ${found.thread && html`<dt>Thread</dt><dd><a href=${link("conversations", ["thread", found.thread])}>${found.thread}</a></dd>`}
      ${found.dead && html`<dt>Dead</dt><dd><${Badge} tone="danger">${found.dead.code}<//> for ${found.dead.to}</dd>`}
      <dt>Id</dt><dd class="mono">${found.messageId}</dd>
    </dl></section>
    <section><h3>What happened to it</h3>
      ${life.value ? html`<${Steps} steps=${life.value.timeline} start=${found.ts} />` : html`<${Loading} />`}</section>
    ${found.data && html`<section><h3>Data</h3><pre class="payload">${JSON.stringify(found.data, null, 2)}</pre></section>`}
    <${Slot} place="message-details" message=${found} />`;
}

function Steps({ steps, start }) {
  return html`<ol class="steps">${steps.map((step, index) => html`<${StepRow} key=${index} step=${step} start=${start} />`)}</ol>`;
}

function StepRow({ step, start }) {
  const why = whyOf(step);
  return html`<li class=${`step ${step.event}`}>
    <span>${stepText(step)}${step.to && html` <strong>${step.to}</strong>`}</span>
    <time class="faint tabular" dateTime=${new Date(step.at).toISOString()} title=${showMoment(step.at)}>
      +${showDuration(Math.max(0, step.at - start))}</time>
    ${why && html`<span class="faint step-why">${why}</span>`}
  </li>`;
}

function whyOf({ door, evidence, detail }) {
  return door || evidence ? [door && `by ${door}`, evidence].filter(Boolean).join(" · ") : detail;
}
