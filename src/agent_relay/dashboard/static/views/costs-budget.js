// The budget: how far it is spent, and a dialog to set it.

import { html, useEffect, useState } from "../lib/ui.js";
import { get, post } from "../lib/api.js";
import { plural, showCost } from "../lib/format.js";
import { orSay, say } from "../lib/toasts.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { confirm, Dialog } from "../parts/dialog.js";
import { Consequence, limitsOf, OwnLimits, rowsOf, spentBy } from "./costs-limits.js";

const ACTIONS = {
  alert: ["Alert only", "You are alerted; everything continues."],
  "pause-spawning": ["Start no more agents", "Running agents continue; no new ones start."],
  "stop-all": ["Stop all agents", "Agents that the relay runs are stopped; no new ones start."],
};
const LIMITS = [
  ["maxPerHour", "Per hour", "all agents, last sixty minutes"],
  ["maxPerSession", "Per session", "each session"],
  ["maxTotal", "Total", "as far back as events are kept"],
];

const SCOPES = { hour: "in the last hour", session: "in one session", total: "in total" };

export function BudgetCard({ hour, whole }) {
  const [budget, setBudget] = useState(null);
  const [isEditing, setEditing] = useState(false);
  useEffect(() => { orSay(async () => setBudget(await get("costs/budget"))); }, []);
  if (!budget) return null;
  const spent = {
    maxPerHour: hour.total.estimatedCostUsd ?? 0, maxPerSession: mostOf(whole.bySession), maxTotal: whole.total.estimatedCostUsd ?? 0,
  };
  const limits = LIMITS.filter(([field]) => budget[field] !== null);
  const own = Object.entries(budget.agents).map(([name, limit]) => [name, limit, spentBy(whole, name)]);
  const isSet = limits.length > 0 || own.length > 0 || Object.keys(budget.teams).length > 0;
  const edit = () => setEditing(true);
  return html`<section class="card budget"><header><h2>Budget</h2>
      ${isSet && html`<span class="faint">${ACTIONS[budget.action][0].toLowerCase()} when it is spent</span>`}
      <${Button} small icon=${isSet ? undefined : "plus"} class="end" onClick=${edit}>${isSet ? "Edit" : "Set a budget"}<//></header>
    <div class="body">${isSet
      ? html`<ul>${limits.map(([field, name, note]) => html`<${Limit} key=${field} name=${name} note=${note}
          spent=${spent[field]} limit=${budget[field]} alertAt=${budget.alertThreshold} />`)}
        ${own.map(([name, limit, sum]) => html`<${Limit} key=${`agent ${name}`} name=${name} note="this agent, altogether" spent=${sum} limit=${limit} alertAt=${budget.alertThreshold} />`)}
        ${Object.entries(budget.teams).map(([name, limit]) => html`<li class="limit" key=${`team ${name}`}><div class="line"><strong>Team ${name}</strong><span class="faint grow">its agents together</span>
          <span class="tabular muted">at most ${showCost(limit)}</span></div></li>`)}</ul>`
      : html`<p class="muted">No limit is set. A limit alerts you before too much is spent, and can pause or stop agents.</p>`}</div>
    ${isEditing && html`<${BudgetDialog} budget=${budget} spent=${spent} whole=${whole} onClose=${() => setEditing(false)} onSaved=${setBudget} />`}
  </section>`;
}

const mostOf = (sessions) => Math.max(0, ...Object.values(sessions).map((each) => each.estimatedCostUsd ?? 0));

function Limit({ name, note, spent, limit, alertAt }) {
  const share = spent / limit;
  const tone = share >= 1 ? "danger" : share >= (alertAt ?? 1) ? "warn" : "ok";
  const about = `${name}: ${showCost(spent)} of ${showCost(limit)}`;
  return html`<li class="limit">
    <div class="line"><strong>${name}</strong><span class="faint clip grow">${note}</span>
      ${tone !== "ok" && html`<${Badge} tone=${tone}>${share >= 1 ? "spent" : "nearly spent"}<//>`}
      <span class="tabular"><b>${showCost(spent)}</b> <span class="muted">of ${showCost(limit)}</span></span></div>
    <div class=${`meter ${tone}`} role="meter" aria-label=${about} aria-valuetext=${`${Math.round(share * 100)} percent`}
      aria-valuemin="0" aria-valuemax=${limit} aria-valuenow=${Math.min(spent, limit)}>
      <i style=${{ width: `${Math.min(100, share * 100)}%` }} />
      ${alertAt && alertAt < 1 ? html`<s style=${{ left: `${alertAt * 100}%` }} title=${`Alert at ${showCost(limit * alertAt)}.`} />` : null}
    </div>
  </li>`;
}

function BudgetDialog({ budget, spent, whole, onClose, onSaved }) {
  const [fields, setFields] = useState(() => ({
    ...Object.fromEntries(LIMITS.map(([field]) => [field, budget[field] ?? ""])),
    alertThreshold: budget.alertThreshold === null ? "" : Math.round(budget.alertThreshold * 100),
    action: budget.action, own: rowsOf(budget),
  }));
  const set = (field) => (event) => setFields((now) => ({ ...now, [field]: event.currentTarget.value }));
  const save = (event) => {
    event.preventDefault();
    orSay(async () => {
      const limits = Object.fromEntries(LIMITS.map(([field]) => [field, numberOf(fields[field])]));
      const share = numberOf(fields.alertThreshold);
      const saved = await setBudget({ ...limits, ...limitsOf(fields.own), action: fields.action, alertThreshold: share === null ? null : share / 100 });
      if (!saved) return;
      onSaved(saved);
      say("The budget is set.", { tone: "success" });
      onClose();
    });
  };
  const footer = html`<${Button} onClick=${onClose}>Cancel<//><${Button} kind="primary" type="submit" form="budget-form">Save<//>`;
  return html`<${Dialog} title="Budget" width=${480} onClose=${onClose} footer=${footer}>
    <form id="budget-form" class="stack" style=${{ "--gap": "16px" }} onSubmit=${save}>
      <div class="limits">${LIMITS.map(([field, name], at) => html`<div class="field" key=${field}>
        <label for=${`budget-${field}`}>${name}</label>
        <span class="input money"><span class="faint">$</span>
          <input id=${`budget-${field}`} type="number" min="0.01" step="0.01" inputmode="decimal" placeholder="no limit" autofocus=${at === 0}
            value=${fields[field]} onInput=${set(field)} /></span>
      </div>`)}</div>
      <${OwnLimits} rows=${fields.own} onChange=${(own) => setFields((now) => ({ ...now, own }))} />
      <div class="field"><label for="budget-alert">Alert me at</label>
        <span class="input money short">
          <input id="budget-alert" type="number" min="1" max="100" step="1" placeholder="–"
            value=${fields.alertThreshold} onInput=${set("alertThreshold")} /><span class="faint">%</span></span></div>
      <fieldset class="field"><legend class="label">When a limit is reached</legend>
        ${Object.entries(ACTIONS).map(([value, [name, note]]) => html`<label class="choice" key=${value}>
          <input type="radio" name="action" value=${value} checked=${fields.action === value} onChange=${set("action")} />
          <span><strong>${name}</strong><span class="faint">${note}</span></span>
        </label>`)}</fieldset>
      <${Consequence} fields=${fields} spent=${spent} whole=${whole} />
    </form><//>`;
}

/** Asks before, where it is spent already and somebody would be stopped or held back at once; null: not set. */
async function setBudget(budget) {
  try {
    return await post("costs/budget", budget);
  } catch (error) {
    if (error.details?.reason !== "budget_spent") throw error;
    const { stops, exceeded } = error.details;
    const spent = exceeded.map((each) => `${showCost(each.spentUsd)} of ${showCost(each.limitUsd)} ${each.name ? `of ${each.budget} ${each.name}` : SCOPES[each.budget]}`).join(", ");
    const isOfSome = exceeded.every((each) => each.name);
    const follows = budget.action !== "stop-all" ? "No more agents will be started."
      : isOfSome ? (stops.length ? `${stops.join(", ")} will be stopped now, and whenever started again.` : "Whoever it is about will be stopped when started.")
      : stops.length ? `${stops.join(", ")} will be stopped now, and no more agents will be started.` : "No agents are running; no more will be started.";
    const isWanted = await confirm({
      title: "This budget is already spent", text: `${spent}. ${follows}`, danger: true,
      action: budget.action === "stop-all" && stops.length ? `Stop ${plural(stops.length, "agent")}` : "Set it anyway",
    });
    return isWanted ? post("costs/budget", { ...budget, confirm: true }) : null;
  }
}

const numberOf = (text) => (text === "" ? null : Number(text));
