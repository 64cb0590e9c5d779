// What became of a message, as far as it is known, in the words of the glossary: queued, sent, received, handed, delivered, read; or rejected, or
// dead. Stages only move forward.

import { html } from "../lib/ui.js";
import { get, part } from "../lib/api.js";
import { showDuration, showTime } from "../lib/format.js";
import { useReading } from "../lib/reading.js";
import { Icon } from "../parts/icon.js";
import { Tip } from "../parts/tooltip.js";

const STAGES = ["queued", "sent", "received", "handed", "delivered", "read"];
const ENDS = ["dead", "rejected", "unknown"];
const WORDS = {
  queued: "Queued for", sent: "Sent to", received: "Received by the wrapper of", handed: "Handed to", delivered: "Delivered to", read: "Read by",
  rejected: "Rejected by", dead: "Not delivered to", unknown: "Not known any more:",
};

const STAGE_WORDS = {
  stored: "stored", queued: "queued", sent: "sent", received: "received by the wrapper", handed: "handed over", delivered: "delivered", read: "read",
  rejected: "rejected", dead: "not delivered", unknown: "not known any more",
};

const SHOWN = 8;
const STEPS_SHOWN = 4;

export const isLater = (one, other) => STAGES.indexOf(one) > STAGES.indexOf(other);

/** A message of the API, each recipient with its stage. */
export const normalise = (message) => ({
  ...message,
  recipients: message.recipients.map((each) => ({ ...each, stage: each.stage ?? each.status })),
});

/** A message of the stream: its recipients are known where it names them. */
export function fromEvent({ messageId, from, to, body, kind, thread = null, channel = null, _ts: ts }) {
  const names = !to || to === "*" || to.startsWith("#") ? [] : to.split(",").map((name) => name.trim());
  const recipients = names.map((name) => ({ name, stage: "queued" }));
  return { messageId, from, to, body, kind, thread, topic: channel === to ? null : channel, ts, recipients };
}

/** Without the shadows, who only get copies. */
const addressed = ({ recipients }) => recipients.filter((each) => !each.copy);

/** The stage that all of them have reached. */
export function stageOf(message) {
  const recipients = addressed(message);
  const end = ENDS.find((word) => recipients.some((each) => each.stage === word));
  if (end) return end;
  if (!recipients.length) return "stored";
  return STAGES[Math.min(...recipients.map((each) => STAGES.indexOf(each.stage)))];
}

export function Ticks({ message }) {
  const stage = stageOf(message);
  const recipients = addressed(message);
  const reached = recipients.filter((each) => isLater(each.stage, "handed")).length;
  const of = recipients.length > 1 ? ` ${reached}/${recipients.length}` : "";
  const icon = ENDS.includes(stage) ? "warning" : isLater(stage, "handed") ? "checks" : "check";
  return html`<${Tip} render=${() => html`<${Evidence} message=${message} />`}>
    <button type="button" class=${`ticks ${stage}`} aria-label=${`Receipt: ${STAGE_WORDS[stage]}${of}`} data-stage=${stage}>
      ${of && html`<span class="tabular" aria-hidden="true">${of}</span>`}<${Icon} name=${icon} size=${15} weight=${2} />
    </button><//>`;
}

/** What stands behind the ticks: who has it, by which door, and what was seen of it. */
function Evidence({ message }) {
  const { value } = useReading(() => get(`messages/${part(message.messageId)}/timeline`), [message.messageId, stageOf(message)]);
  const steps = value?.timeline ?? [];
  const stepsOf = (name) => steps.filter((step) => step.to === name).slice(-STEPS_SHOWN);
  if (!message.recipients.length && !steps.length) return html`<p>Stored ${showTime(message.ts)}. There were no recipients.</p>`;
  return html`<div class="evidence">
    <p class="faint">Stored ${showTime(message.ts)}</p>
    ${message.recipients.slice(0, SHOWN).map((each) => html`<p key=${each.name} class=${`evidence-line ${each.stage}`}>
      <span>${each.copy ? "Copy for" : WORDS[each.stage]}</span> <strong>${each.name}</strong>
      ${stepsOf(each.name).map((step) => html`<${StepLine} key=${step.event} ...${step} start=${message.ts} />`)}
    </p>`)}
    ${message.recipients.length > SHOWN && html`<p class="faint">and ${message.recipients.length - SHOWN} more</p>`}
  </div>`;
}

function StepLine({ event, at, door, evidence, start }) {
  const how = [door && `by ${door}`, evidence && `seen: ${evidence}`].filter(Boolean).join(", ");
  return html`<span class="step-line faint">${SHORT[event] ?? event.replaceAll("_", " ")} +${showDuration(Math.max(0, at - start))}${how && `, ${how}`}</span>`;
}

const STEPS = {
  stored: "Stored", sent: "Sent to", resent: "Sent again to", received: "Received by the wrapper of", waits: "Waits for", handed: "Handed to",
  acknowledged: "Delivered to", injected: "Delivered to", read: "Read by", rejected: "Rejected by", expired: "Expired for",
  busy: "Put off by", unanswered: "Not acknowledged yet by", dropped: "Not kept for", erased: "Erased for", removed: "Given up, its name was removed:",
};

const SHORT = {
  sent: "Sent", resent: "Sent again", received: "Received by the wrapper", waits: "Waits", handed: "Handed", acknowledged: "Delivered", injected: "Delivered",
  read: "Read", rejected: "Rejected", expired: "Expired", busy: "Put off", unanswered: "Not acknowledged yet", dropped: "Not kept", erased: "Erased", removed: "Given up, its name was removed",
};

/** A step of a message's life, in words. */
export const stepText = (step) => STEPS[step.event] ?? `${step.event.replaceAll("_", " ")}:`;
