// What was decided: who answered, when, by which rule, newest first.

import { html, useEffect } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { showAgo, showMoment } from "../lib/format.js";
import { afterQuiet } from "../lib/frames.js";
import { onEvents, onReset } from "../lib/live.js";
import { useReading } from "../lib/reading.js";
import { link } from "../lib/router.js";
import { isYou } from "../lib/store.js";
import { reveal } from "../lib/visible-text.js";
import { Avatar } from "../parts/avatar.js";
import { Badge } from "../parts/badge.js";
import { Empty, Failed, Loading } from "../parts/empty.js";
import { Tip } from "../parts/tooltip.js";

const SINCE_MS = 7 * 86_400_000;
const MOST_PAGES = 20;
const MOST = 300;
const AGAIN_MS = 400;
const TYPES = ["permission.requested", "permission.resolved", "question.requested", "question.resolved"];
const OUTCOMES = { approved: ["ok", "Approved"], denied: ["danger", "Denied"], timeout: ["warn", "Not answered in time"], answered: ["accent", "Answered"], gone: ["neutral", "No longer asked"] };

/** Requests that are over: [{ id, agent, asked, ended }], the events of both ends; `asked` may be too old to be known. */
export function pairUp(events) {
  const asked = new Map();
  const found = [];
  for (const event of events) {
    const id = `${event._sessionId} ${event.requestId ?? event.questionId}`;
    if (event.type.endsWith(".requested")) asked.set(id, event);
    else found.push({ id: `${id} ${event._seq}`, agent: event._agentName, asked: asked.get(id) ?? null, ended: event });
  }
  return found.reverse();
}

async function readDecided() {
  const events = [];
  let cursor = null;
  for (let page = 0; page < MOST_PAGES; page++) {
    const answer = await get("events", { types: TYPES.join(","), since: Date.now() - SINCE_MS, limit: 1000, cursor });
    events.push(...answer.events);
    cursor = answer.next_cursor;
    if (cursor === null) break;
  }
  return pairUp(events).slice(0, MOST);
}

export function Decided() {
  const { value, error, again } = useReading(readDecided, []);
  useEffect(() => {
    const soon = afterQuiet(AGAIN_MS, again);
    const undo = [onEvents(["permission.resolved", "question.resolved"], () => soon()), onReset(again)];
    return () => undo.forEach((each) => each());
  }, []);
  if (error) return html`<${Failed} error=${error} again=${again} />`;
  if (value === null) return html`<${Loading} />`;
  if (!value.length) return html`<${Empty} icon="check" title="Nothing was decided in the last seven days"><p>Who answered what, and by which rule, is kept here.</p><//>`;
  return html`<ul class="card decided" aria-label="Decided">${value.map((each) => html`<${Row} key=${each.id} ...${each} />`)}</ul>`;
}

function Row({ agent, asked, ended }) {
  const [tone, word] = OUTCOMES[outcomeOf(ended)] ?? ["neutral", ended.resolution];
  const what = asked?.command ?? asked?.filePath ?? asked?.question ?? asked?.description ?? "a request from before these records";
  return html`<li class="decided-row" data-decided=${ended.requestId ?? ended.questionId}>
    <${Avatar} name=${agent} size=${26} />
    <div class="grow">
      <p class="line"><a class="strong clip" href=${link("conversations", ["agent", agent], { select: `agent:${agent}` })}>${agent}</a>
        ${asked?.tool && html`<span class="muted clip">${reveal(asked.tool)}</span>`}<${Badge} tone=${tone}>${word}<//></p>
      <p class=${asked?.command ? "decided-what mono" : "decided-what"} dir="auto">${reveal(what)}</p>
      <p class="faint decided-who">${whoOf(ended)}${ended.answer ? `: “${reveal(ended.answer)}”` : ""}${ended.reason ? `: ${reveal(ended.reason)}` : ""}</p>
    </div>
    <${Tip} text=${showMoment(ended._ts)}><time class="faint tabular" tabindex="0" datetime=${new Date(ended._ts).toISOString()}>${showAgo(ended._ts)}</time><//>
  </li>`;
}

const outcomeOf = ({ type, resolution, answer }) => (type === "question.resolved" ? (answer ? "answered" : "gone") : resolution);

/** By whom, in words. */
function whoOf({ resolvedBy }) {
  if (resolvedBy === "policy") return "By a rule"; // its reason follows
  if (resolvedBy === "human") return "By a person, here or at the terminal";
  if (!resolvedBy || resolvedBy === "nobody") return "By nobody";
  return isYou(resolvedBy) ? "By you" : `By ${resolvedBy}`;
}
