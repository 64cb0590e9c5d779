// What an agent did lately, what that cost over time, and how messages reach it, with what shows that they do.

import { html, useEffect, useState } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { plural, showAgo, showCost, showMoment, showTime } from "../lib/format.js";
import { afterQuiet, atMostEvery } from "../lib/frames.js";
import { onEvents, onReset } from "../lib/live.js";
import { useReading } from "../lib/reading.js";
import { link } from "../lib/router.js";
import { reveal } from "../lib/visible-text.js";
import { BetterDoors } from "../shell/agent-details.js";
import { Icon } from "../parts/icon.js";

const DAY_MS = 86_400_000;
const TYPES = ["file.operation", "command.executed"];
const MOST = 30;
const MOST_PAGES = 5;
const STEPS = 48;
const AGAIN_MS = 10_000;
const QUIET_MS = 1_500;

async function readWork(name) {
  let found = [];
  let cursor = null;
  for (let page = 0; page < MOST_PAGES; page++) {
    const answer = await get("events", { types: TYPES.join(","), agent: name, since: Date.now() - DAY_MS, limit: 1000, cursor });
    found = [...found, ...answer.events].slice(-MOST);
    cursor = answer.next_cursor;
    if (cursor === null) break;
  }
  return found.reverse();
}

/** Files and commands, the newest first. */
export function WhatItDid({ name }) {
  const { value } = useReading(() => readWork(name), [name]);
  const [heard, setHeard] = useState([]);
  useEffect(() => onEvents(TYPES, (events) => {
    const own = events.filter((event) => event._agentName === name);
    if (own.length) setHeard((now) => [...own.reverse(), ...now].slice(0, MOST));
  }), [name]);
  const newest = heard.at(-1)?._seq ?? Infinity;
  const all = [...heard, ...(value ?? []).filter((event) => event._seq < newest)].slice(0, MOST);
  return html`<section class="card agent-work" aria-label="Files and commands"><header><h2>Files and commands</h2><span class="faint">last 24 hours</span>
      <a class="end" href=${link("timeline")}>Timeline</a></header>
    ${all.length ? html`<ul tabindex="0" aria-label="What it did">${all.map((event) => html`<${Work} key=${event._seq} event=${event} />`)}</ul>`
      : html`<p class="body muted">${value === null ? "Reading…" : "Nothing was recorded."}</p>`}</section>`;
}

function Work({ event }) {
  const isFile = event.type === "file.operation";
  const failed = !isFile && event.exitCode;
  return html`<li class="line"><${Icon} name=${isFile ? "copy" : "terminal"} size=${14} /><span class="muted">${isFile ? event.operation : "ran"}</span>
    <span class="mono clip grow" title=${isFile ? event.filePath : event.command}>${reveal(isFile ? event.filePath : event.command)}</span>
    ${failed ? html`<span class="bad-exit">exit ${event.exitCode}</span>` : null}
    <time class="faint tabular" title=${showMoment(event._ts)}>${showAgo(event._ts)}</time></li>`;
}

/** A bar for each half hour of the last day. */
export function CostOverTime({ name }) {
  const [turn, setTurn] = useState(0);
  const { value } = useReading(() => get("costs/trend", { agent: name, since: Date.now() - DAY_MS, points: STEPS }), [name, turn]);
  const [shown, setShown] = useState(null);
  useEffect(() => { if (value) setShown(value); }, [value]);
  useEffect(() => {
    const again = atMostEvery(AGAIN_MS, () => setTurn((now) => now + 1));
    return onEvents(["tokens.used"], (events) => { if (events.some((event) => event._agentName === name)) again(); });
  }, [name]);
  if (!shown) return null;
  const most = Math.max(...shown.costUsd);
  const sum = shown.costUsd.reduce((all, usd) => all + usd, 0);
  const words = most ? `${showCost(sum)} in the last 24 hours, at most ${showCost(most)} in half an hour` : "Nothing was spent in the last 24 hours";
  return html`<section class="card agent-cost"><header><h2>Cost over time</h2><span class="faint">${words}</span></header>
    <svg class="body" viewBox=${`0 0 ${STEPS * 6} 40`} preserveAspectRatio="none" role="img" aria-label=${words}>
      ${shown.costUsd.map((usd, at) => (usd > 0 ? html`<rect key=${at} x=${at * 6 + 1} width="4" rx="1" y=${40 - Math.max(2, (usd / most) * 38)} height=${Math.max(2, (usd / most) * 38)}>
        <title>${`${showTime(shown.since + at * shown.stepMs)}: ${showCost(usd)}`}</title></rect>` : null))}
    </svg></section>`;
}

/** The door that is used, what shows that it works, and better ones that are not. */
export function WayIn({ agent }) {
  const { value, again } = useReading(() => get("messages", { to: agent.name, limit: 1, receipts: true }), [agent.name]);
  useEffect(() => {
    const soon = afterQuiet(QUIET_MS, again);
    const undo = [onEvents(["message.delivered"], (events) => events.some((event) => event.to === agent.name) && soon()), onReset(again)];
    return () => undo.forEach((each) => each());
  }, [agent.name]);
  const [last] = value?.messages ?? [];
  const receipt = last?.recipients.find((each) => each.name === agent.name);
  return html`<section class="card agent-way" aria-label="Way in"><header><h2>Way in</h2></header><dl class="facts body">
    <dt>Door</dt><dd>${agent.door ?? "none: it fetches its messages itself"}<${BetterDoors} agent=${agent} /></dd>
    <dt>Evidence</dt><dd>${receipt ? html`the last message to it: ${receipt.stage} at ${showTime(receipt.stageAt ?? last.ts)}${receipt.door ? `, by ${receipt.door}` : ""}${receipt.evidence ? `, seen: ${receipt.evidence}` : ""}`
      : "no message to it yet"}</dd>
    <dt>Waiting</dt><dd>${plural(agent.queueDepth, "message")}</dd></dl></section>`;
}
