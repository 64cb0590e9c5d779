// Limits of single agents and teams, and what would follow from a budget: shown before it is saved.

import { html } from "../lib/ui.js";
import { showCost } from "../lib/format.js";
import { agents, isYou } from "../lib/store.js";
import { Button } from "../parts/button.js";
import { takesCommands } from "./control-actions.js";

const KINDS = [["agents", "Agent"], ["teams", "Team"]];

/** Of an agent altogether, in dollars; names differ in letters alone. */
export const spentBy = (whole, name) => Object.entries(whole.byAgent)
  .filter(([each]) => each.toLowerCase() === name.toLowerCase()).reduce((sum, [, { estimatedCostUsd }]) => sum + (estimatedCostUsd ?? 0), 0);

/** [{ kind, name, usd }] as they are edited. */
export const rowsOf = (budget) => KINDS.flatMap(([kind]) => Object.entries(budget[kind]).map(([name, usd]) => ({ kind, name, usd })));

/** { agents, teams } as they are saved; a row without a name or a limit is none. */
export const limitsOf = (rows) => Object.fromEntries(KINDS.map(([kind]) => [kind, Object.fromEntries(rows
  .filter((row) => row.kind === kind && row.name.trim() && Number(row.usd) > 0).map((row) => [row.name.trim(), Number(row.usd)]))]));

export function OwnLimits({ rows, onChange }) {
  const set = (at, part) => onChange(rows.map((row, index) => (index === at ? { ...row, ...part } : row)));
  const others = [...agents.value.values()].filter(({ name }) => !isYou(name));
  return html`<fieldset class="field own-limits"><legend class="label">For single agents and teams</legend>
    <datalist id="budget-names">${others.map(({ name }) => html`<option key=${name} value=${name} />`)}</datalist>
    ${rows.map((row, at) => html`<div class="line" key=${at}>
      <select class="input" aria-label="Agent or team" value=${row.kind} onChange=${(event) => set(at, { kind: event.currentTarget.value })}>
        ${KINDS.map(([kind, word]) => html`<option key=${kind} value=${kind}>${word}</option>`)}</select>
      <input class="input grow" aria-label="Name" list=${row.kind === "agents" ? "budget-names" : undefined} autocomplete="off" spellcheck="false" value=${row.name} onInput=${(event) => set(at, { name: event.currentTarget.value })} />
      <span class="input money"><span class="faint">$</span><input type="number" min="0.01" step="0.01" inputmode="decimal" aria-label="Its limit" value=${row.usd} onInput=${(event) => set(at, { usd: event.currentTarget.value })} /></span>
      <${Button} kind="quiet" small icon="x" label=${`Remove the limit of ${row.name || "nobody"}`} onClick=${() => onChange(rows.filter((_, index) => index !== at))} /></div>`)}
    <${Button} small icon="plus" onClick=${() => onChange([...rows, { kind: "agents", name: others[0]?.name ?? "", usd: "" }])}>Add a limit<//></fieldset>`;
}

/** In words, what a budget as it is written now would do, and how far away that is. */
export function Consequence({ fields, spent, whole }) {
  const lines = [...ofAll(fields, spent), ...ofSome(fields, whole)];
  if (!lines.length) return null;
  return html`<section class="consequence" role="status" aria-label="What follows"><h3>What follows</h3>
    <ul>${lines.map(({ words, isSpent }) => html`<li key=${words} class=${isSpent ? "now" : ""}>${words}</li>`)}</ul></section>`;
}

const SCOPES = [["maxPerHour", "The last hour"], ["maxPerSession", "The most expensive session"], ["maxTotal", "All together"]];

function* ofAll(fields, spent) {
  const running = [...agents.value.values()].filter((agent) => agent.connected && takesCommands(agent)).map(({ name }) => name);
  const follows = {
    alert: "you are alerted", "pause-spawning": "no more agents are started",
    "stop-all": running.length ? `${running.join(", ")} would be stopped, and no more agents started` : "no agent that runs would be stopped; no more are started",
  }[fields.action];
  for (const [field, name] of SCOPES) {
    const limit = Number(fields[field]);
    if (limit > 0) yield { ...distance(name, spent[field], limit), words: `${distance(name, spent[field], limit).words} ${follows}.` };
  }
}

function* ofSome(fields, whole) {
  const { agents: own, teams } = limitsOf(fields.own);
  const stops = fields.action === "stop-all";
  for (const [name, limit] of Object.entries(own)) {
    const found = distance(name, spentBy(whole, name), limit);
    yield { ...found, words: `${found.words} ${stops ? `${name} alone is stopped` : "you are alerted"}.` };
  }
  for (const [name, limit] of Object.entries(teams)) yield { isSpent: false, words: `At ${showCost(limit)} of team ${name}: ${stops ? "its agents are stopped" : "you are alerted"}.` };
}

const distance = (name, spent, limit) => (spent >= limit
  ? { isSpent: true, words: `${name}: ${showCost(spent)} of ${showCost(limit)} is spent already. At once:` }
  : { isSpent: false, words: `${name}: ${showCost(limit - spent)} of ${showCost(limit)} left. Then:` });
