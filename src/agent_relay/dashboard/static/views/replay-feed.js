// What was said and done up to a moment, step by step.

import { classes, html } from "../lib/ui.js";
import { showDuration, showMoment } from "../lib/format.js";
import { renderMarkdown } from "../lib/markdown.js";
import { showName } from "../conversations/place.js";
import { Avatar } from "../parts/avatar.js";
import { Badge } from "../parts/badge.js";
import { Icon } from "../parts/icon.js";
import { VirtualList } from "../parts/virtual-list.js";
import { showAt } from "./timeline-scale.js";

const tones = { approved: "ok", denied: "danger", timeout: "warn", low: "neutral", medium: "info", high: "warn", critical: "danger" };

export function ReplayFeed({ player }) {
  const count = player.count.value;
  const shown = player.steps.slice(0, count);
  return html`<${VirtualList} class="rp-feed" label="What happened" items=${shown} keyOf=${(step) => step.id} stick="bottom" estimate=${44}
    render=${(step, before) => html`<${Step} step=${step} before=${before} player=${player} isLast=${step === shown.at(-1)} />`}
    before=${!count && html`<p class="faint rp-before">Nothing has happened yet.</p>`} />`;
}

function Step({ step, before, player, isLast }) {
  const Body = bodies[step.kind];
  const at = player.at.value;
  const ended = step.ended && step.ended._ts <= at ? step.ended : null;
  const hasFace = step.agent && step.kind !== "note" && before?.agent !== step.agent;
  return html`<article class=${classes("rp-step", `rp-${step.kind}`, isLast && "now")} style=${{ "--tint": `var(${step.group.colour})` }}>
    <time class="faint tabular" title=${showMoment(step.ts)}>${showAt(step.ts, 60_000)}</time>
    <span class="rp-face">${hasFace ? html`<${Avatar} name=${step.agent} size=${24} />` : html`<i />`}</span>
    <div class="rp-what"><${Body} step=${step} ended=${ended} at=${at} /></div>
  </article>`;
}

const took = (event) => (event.duration === null ? "" : showDuration(event.duration)); // null: the agent's record does not say
const nameOf = (step) => (step.agent ? showName(step.agent) : "The relay");
const Who = ({ step, children }) => html`<div class="line rp-who"><strong>${nameOf(step)}</strong>${children}</div>`;

const bodies = {
  note: ({ step }) => html`<span class="muted"><strong>${nameOf(step)}</strong> ${step.text}</span>`,

  message: ({ step, ended }) => html`<${Who} step=${step}><span class="faint">to</span><span>${showName(step.event.to || step.event.channel)}</span>
      ${step.event.kind !== "message" && html`<${Badge}>${step.event.kind}<//>`}
      ${ended && html`<span class="faint rp-end" title=${`delivered after ${showDuration(ended.latencyMs)}`}>
        <${Icon} name="checks" size=${14} /></span>`}<//>
    <div class="prose" dangerouslySetInnerHTML=${{ __html: renderMarkdown(step.event.body) }} />`, // cleaned there

  item: ({ step, ended, at }) => html`<${Who} step=${step}><span class="muted">${step.text}</span>
      <span class="faint rp-end tabular">${ended ? took(ended) : html`<span class="spinner" />`}</span><//>
    <${Output} text=${step.parts.filter((part) => part.ts <= at).map((part) => part.text).join("")} />`,

  request: ({ step, ended }) => html`<${Who} step=${step}><span class="muted">${step.event.tool ? `asks to use ${step.event.tool}` : "asks"}</span>
      ${step.event.riskLevel && html`<${Badge} tone=${tones[step.event.riskLevel]}>${step.event.riskLevel}<//>`}
      <span class="rp-end"><${Outcome} ended=${ended} /></span><//>
    <p class="rp-ask">${step.event.question ?? step.event.description}</p><${Output} text=${step.event.command ?? step.event.filePath ?? ""} />`,

  command: ({ step }) => html`<${Who} step=${step}><span class="muted">ran</span>
      <span class="rp-end line"><${Exit} code=${step.event.exitCode} />
        <span class="faint tabular">${took(step.event)}</span></span><//>
    <${Output} text=${[`$ ${step.event.command}`, step.event.stdout, step.event.stderr].filter(Boolean).join("\n")} />`,

  file: ({ step }) => html`<${Who} step=${step}><span class="muted">${step.event.operation}</span><code class="clip">${step.event.filePath}</code>
      ${step.event.linesChanged ? html`<span class="faint rp-end tabular">${step.event.linesChanged} lines</span>` : null}<//>
    <${Output} text=${step.event.diff ?? ""} />`,
};

const Exit = ({ code }) => code !== null && html`<${Badge} tone=${code ? "danger" : "ok"}>exit ${code}<//>`;

function Outcome({ ended }) {
  if (!ended) return html`<${Badge} tone="warn">waits<//>`;
  return html`<${Badge} tone=${tones[ended.resolution] ?? "ok"}>${ended.resolution ?? (ended.answer || "closed")} · ${ended.resolvedBy}<//>`;
}

const Output = ({ text }) => text && html`<pre class="rp-output">${text}</pre>`;
