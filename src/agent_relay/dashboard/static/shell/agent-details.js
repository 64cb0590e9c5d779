// About one agent: what it does, runs on, waits for and costs.

import { html } from "../lib/ui.js";
import { showAgo, showCost, showMoment, showNumber } from "../lib/format.js";
import { link } from "../lib/router.js";
import { Slot } from "../lib/slots.js";
import { agents, costs, isReady } from "../lib/store.js";
import { reveal } from "../lib/visible-text.js";
import { Avatar } from "../parts/avatar.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { Empty, Loading } from "../parts/empty.js";
import { CliIcon } from "../parts/icon.js";
import { isPaused, showState, stateOf } from "./agent-list.js";

const tones = { waiting: "warn", working: "info", starting: "info", idle: "ok", offline: "neutral" };

export function AgentDetails({ id }) {
  const agent = agents.value.get(id);
  if (!agent && !isReady.value) return html`<${Loading} />`;
  if (!agent) return html`<${Empty} icon="robot" title="No such agent"><p>This daemon knows no agent ${id}.</p><//>`;
  const messages = link("conversations", ["agent", agent.name], { select: `agent:${agent.name}` });
  return html`<${Who} agent=${agent} />
    ${agent.waitingFor && html`<p class="note warn">Waiting for: ${reveal(agent.waitingFor)}</p>`}
    ${agent.hold && html`<p class="note hold" data-hold=${agent.hold.reason}>Messages wait: ${reveal(agent.hold.line)}</p>`}
    <div class="line wrap">
      <${Button} small icon="robot" href=${link("agent", [agent.name])}>Whole page<//><${Button} small icon="messages" href=${messages}>Messages<//><${Slot} place="agent-actions" agent=${agent} />
    </div>
    <${Runs} agent=${agent} /><${Messages} agent=${agent} /><${Spent} agent=${agent} />
    <${Slot} place="agent-details" agent=${agent} />`;
}

function Who({ agent }) {
  return html`<div class="line" style=${{ "--gap": "12px" }}>
    <${Avatar} name=${agent.name} size=${44} />
    <div class="stack grow" style=${{ "--gap": "4px" }}>
      <strong class="clip big">${agent.name}</strong>
      <span class="line"><${Badge} tone=${isPaused(agent) ? "warn" : tones[stateOf(agent)]}>${showState(agent)}<//>
        ${agent.openRequests ? html`<a class="badge warn" href=${link("inbox")}>asks ${agent.openRequests}</a>` : null}</span>
    </div>
  </div>`;
}

export function Runs({ agent }) {
  return html`<section><h3>Runs</h3><dl class="facts">
    <dt>CLI</dt>
    <dd class="line" style=${{ "--gap": "5px" }}>${agent.cli ? html`<${CliIcon} cli=${agent.cli} />${agent.cli}` : "unknown"}</dd>
    ${agent.model && html`<dt>Model</dt><dd>${agent.model}</dd>`}
    ${agent.host && html`<dt>Host</dt><dd>${agent.host}</dd>`}
    ${agent.door && html`<dt>Door</dt><dd>${agent.door}<${BetterDoors} agent=${agent} /></dd>`}
    ${agent.meta?.cwd && html`<dt>Folder</dt><dd class="mono">${agent.meta.cwd}</dd>`}
    <dt>Session</dt><dd class="mono">${agent.sessionId}</dd>
    <dt>Since</dt><dd>${showMoment(agent.registeredAt)}</dd>
    ${!agent.connected && html`<dt>Last seen</dt><dd>${showAgo(agent.lastSeenAt)} ago</dd>`}
  </dl></section>`;
}

/** Better ways in that are not used, each with the reason and what to do about it; where none is known, the note of the one in use. */
export function BetterDoors({ agent: { connected, doorNote, unusedDoors = [] } }) {
  const lines = connected && unusedDoors.length ? unusedDoors.map(({ door, reason, mend }) => `${door} is not used: ${reason} ${mend}`) : [doorNote];
  return lines.filter(Boolean).map((line) => html`<span key=${line} class="faint better-door">${reveal(line)}</span>`);
}

export function Messages({ agent }) {
  const channels = agent.channels.map((channel) => html`<a key=${channel} href=${link("conversations", ["channel", channel])}>${channel}</a>`);
  return html`<section><h3>Messages</h3><dl class="facts">
    <dt>Queued</dt><dd class="tabular">${showNumber(agent.queueDepth)} of ${showNumber(agent.queueCapacity)}</dd>
    <dt>In flight</dt><dd class="tabular">${showNumber(agent.inflight)}</dd>
    ${channels.length > 0 && html`<dt>Channels</dt><dd class="line wrap">${channels}</dd>`}
    ${agent.shadowedBy?.length > 0 && html`<dt>Copied to</dt><dd>${agent.shadowedBy.join(", ")}</dd>`}
    ${agent.shadows?.length > 0 && html`<dt>Gets copies of</dt><dd>${agent.shadows.join(", ")}</dd>`}
    ${agent.subscriptions.length > 0 && html`<dt>Topics</dt><dd>${agent.subscriptions.join(", ")}</dd>`}
  </dl></section>`;
}

export function Spent({ agent }) {
  const all = costs.value?.byAgent ?? {};
  if (!Object.hasOwn(all, agent.name)) return null;
  const spent = all[agent.name];
  return html`<section><h3>Cost</h3><dl class="facts">
    <dt>Estimate</dt><dd class="tabular">${showCost(agent.estimatedCostUsd)}</dd>
    <dt>Tokens</dt><dd class="tabular">${showNumber(spent.inputTokens)} in, ${showNumber(spent.outputTokens)} out</dd>
    ${spent.cacheReadTokens > 0 && html`<dt>From cache</dt><dd class="tabular">${showNumber(spent.cacheReadTokens)}</dd>`}
    ${spent.unpricedTokens > 0 && html`<dt>No price</dt><dd class="tabular">${showNumber(spent.unpricedTokens)} tokens</dd>`}
  </dl></section>`;
}
