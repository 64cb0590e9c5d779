// The agents: those that wait for a person first, then those that work, then the rest. Offline agents that nothing waits for are hidden.

import { classes, computed, html, signal, useComputed } from "../lib/ui.js";
import { showCost, showCount } from "../lib/format.js";
import { change, link, selected, viewId } from "../lib/router.js";
import { isPhone } from "../lib/screen.js";
import { Slot } from "../lib/slots.js";
import { agents, asking, isReady, isYou } from "../lib/store.js";
import { Avatar } from "../parts/avatar.js";
import { Badge } from "../parts/badge.js";
import { CliIcon } from "../parts/icon.js";
import { useRoving } from "../parts/roving.js";
import { Tip } from "../parts/tooltip.js";
import { activityOf } from "./activity.js";

const FILTER_FROM = 12; // so many agents need a field to find one
const ORDER = { waiting: 0, working: 1, starting: 2, idle: 3, offline: 4 };
const WORDS = { waiting: "Waiting for you", working: "Working", starting: "Starting", idle: "Idle", offline: "Offline" };

const PLAIN = new Set(["offline", "working", "starting", "unacknowledged"]);

const wanted = signal("");
const others = computed(() => [...agents.value.values()].filter((agent) => !isYou(agent.name)));
const showsOffline = signal(false);
const isHidden = ({ name, connected, queueDepth, inflight }) => !connected && !queueDepth && !inflight && selected.value !== `agent:${name}`;
const hidden = computed(() => others.value.filter(isHidden).length);
const shown = computed(() => {
  const word = wanted.value.trim().toLowerCase();
  const found = others.value.filter((agent) => (word
    ? agent.name.toLowerCase().includes(word) || agent.cli?.includes(word) || agent.host === word
    : showsOffline.value || !isHidden(agent)));
  const sorted = found.sort((one, other) => ORDER[stateOf(one)] - ORDER[stateOf(other)] || one.name.localeCompare(other.name));
  if (isHeld.value) sorted.sort((one, other) => placeOf(one) - placeOf(other)); // whoever comes meanwhile is at the end
  else order = new Map(sorted.map((agent, place) => [agent.name, place]));
  return sorted;
});
/** While somebody points at the list, or goes through it by keys, nobody in it changes places. */
const isHeld = signal(false);
let order = new Map();
const placeOf = ({ name }) => order.get(name) ?? order.size;

/** What an agent does now: its state, or "waiting" while it asks something. */
export const stateOf = (agent) => (agent.connected && asking.value.has(agent.name) ? "waiting" : agent.state);

/** The same in words. */
export const showState = (agent) => (isPaused(agent) ? "Paused" : WORDS[stateOf(agent)]);

/** What its dot shows: its state, or "paused". */
export const dotOf = (agent) => (isPaused(agent) ? "paused" : stateOf(agent));

/** Nothing reaches it until somebody resumes it; what it asks still waits for an answer. */
export const isPaused = (agent) => agent.paused && agent.connected && stateOf(agent) !== "waiting";

/** Why its messages wait, where a person should know: that it is offline, working or starting, and what it asks, is said already. */
export const showHold = ({ name, hold }) => (hold && !PLAIN.has(hold.reason) && !(hold.reason === "dialog" && asking.value.has(name)) ? hold.line : null);

const hold = ({ type, pointerType, target }) => {
  if (type === "focusin" ? target.matches(":focus-visible") : pointerType !== "touch") isHeld.value = true;
};
const letGo = ({ currentTarget }) => { isHeld.value = currentTarget.matches(":hover") || currentTarget.querySelector(":focus-visible") !== null; };

export function AgentList() {
  const list = useRoving(".row");
  const all = others.value.length;
  const here = others.value.filter((agent) => agent.connected).length;
  return html`<section class="agents" aria-label="Agents">
    <div class="heading">
      <h2>Agents</h2>${all ? html`<span class="tabular">${here}/${all}</span>` : null}<${Slot} place="agents-heading" />
    </div>
    ${all >= FILTER_FROM && html`<${Filter} />`}
    <ul class="scroll" ref=${list} onPointerEnter=${hold} onPointerLeave=${letGo} onFocusIn=${hold} onFocusOut=${letGo}>
      ${shown.value.map((agent) => html`<li key=${agent.name}><${AgentRow} agent=${agent} /></li>`)}
      ${isReady.value ? !all && html`<${Nobody} />` : html`<${Placeholders} />`}
      ${hidden.value > 0 && !wanted.value.trim() && html`<li><${OfflineSwitch} /></li>`}
    </ul>
  </section>`;
}

const Filter = () => html`<div class="agent-filter"><input class="input" type="search" placeholder="Find an agent" aria-label="Find an agent"
  value=${wanted.value} onInput=${(event) => { wanted.value = event.currentTarget.value; }} /></div>`;

const OfflineSwitch = () => html`<button type="button" class="row agents-offline faint" aria-expanded=${showsOffline.value ? "true" : "false"}
  onClick=${() => { showsOffline.value = !showsOffline.value; }}>${showsOffline.value ? "Hide" : "Show"} ${showCount(hidden.value)} offline</button>`;

const Nobody = () => html`<li class="none faint">No agents yet. Start one with <code>agent-relay -n Alice claude</code>.</li>`;

const Placeholders = () => [1, 2, 3].map((key) => html`<li class="agent row" key=${key}>
  <span class="skeleton" style=${{ width: "28px", height: "28px" }} /><span class="skeleton grow" style=${{ height: "12px" }} />
</li>`);

function AgentRow({ agent }) {
  const choice = { select: `agent:${agent.name}` };
  const isChosen = useComputed(() => selected.value === choice.select).value;
  const open = (event) => {
    if (["conversations", "agents"].includes(viewId.peek())) return;
    event.preventDefault(); // elsewhere the view stays, and the details change
    change(choice);
  };
  const dot = dotOf(agent);
  return html`<a class=${classes("row agent", dot)} data-agent=${agent.name} aria-current=${isChosen ? "true" : undefined}
    href=${link("conversations", ["agent", agent.name], isPhone.value ? {} : choice)} onClick=${open}>
    <${Avatar} name=${agent.name} state=${dot} />
    <span class="grow">
      <span class="line"><span class="name clip grow">${agent.name}</span><${Queue} agent=${agent} />
        ${agent.estimatedCostUsd ? html`<span class="cost tabular">${showCost(agent.estimatedCostUsd)}</span>` : null}</span>
      <${Activity} agent=${agent} dot=${dot} />
      ${showHold(agent) && html`<span class="about hold"><span class="clip" title=${showHold(agent)}>${showHold(agent)}</span></span>`}
    </span>
  </a>`;
}

/** Model and folder are in the details: here is what it does. */
function Activity({ agent, dot }) {
  const { words, ago } = activityOf(agent, dot);
  return html`<span class="about" title=${words}><${CliIcon} cli=${agent.cli} /><span class="state clip" data-activity>${words}</span>
    ${ago && html`<span class="ago tabular">· ${ago}</span>`}
    ${agent.host && html`<span class="host" data-host=${agent.host}>· ${agent.host}</span>`}</span>`;
}

function Queue({ agent: { queueDepth, queueCapacity } }) {
  if (!queueDepth) return null;
  const tone = queueDepth > queueCapacity / 2 ? "warn" : "neutral";
  return html`<${Tip} text=${`${queueDepth} of at most ${queueCapacity} messages are waiting.`}>
    <span><${Badge} tone=${tone}>${showCount(queueDepth)} queued<//></span>
  <//>`;
}
