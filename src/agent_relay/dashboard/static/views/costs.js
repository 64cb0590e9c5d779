// What was spent: the sum, over time, by agent and by model, and how it stands to the budget.

import { html, loadStyle, useEffect, useState } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { showCost, showCount, showNumber } from "../lib/format.js";
import { atMostEvery } from "../lib/frames.js";
import { onEvents, onReset } from "../lib/live.js";
import { change, link } from "../lib/router.js";
import { costs as whole } from "../lib/store.js";
import { Empty, Failed, Loading } from "../parts/empty.js";
import { Tabs } from "../parts/tabs.js";
import { BudgetCard } from "./costs-budget.js";
import { SpentTable } from "./costs-table.js";
import { TrendCard } from "./costs-trend.js";

await Promise.all([loadStyle("css/costs.css"), loadStyle("vendor/uplot/uplot.css")]);

const HOUR_MS = 3_600_000;
const RANGES = { "1h": HOUR_MS, "24h": 24 * HOUR_MS, "7d": 168 * HOUR_MS, all: null };
const RANGE_WORDS = { "1h": "the last hour", "24h": "the last 24 hours", "7d": "the last 7 days", all: "all recorded usage" };
const RANGE_TABS = [{ value: "1h", label: "1 h" }, { value: "24h", label: "24 h" }, { value: "7d", label: "7 d" }, { value: "all", label: "All" }];
const READ_MS = 6_000; // a day's usages are looked through each time
const POINTS = 60;

export default function Costs({ route }) {
  const range = Object.hasOwn(RANGES, route.query.range ?? "") ? route.query.range : "24h";
  const by = route.query.by === "agent" ? "agent" : "model";
  const { read, error, again } = useCosts(range);
  return html`<div class="view">
    <header class="view-head"><h1>Costs</h1><div class="tools">
      <${Tabs} label="Time" value=${range} options=${RANGE_TABS} onChange=${(value) => change({ range: value }, { replace: true })} />
    </div></header>
    <div class="view-body">
      ${read && whole.value ? html`<${Board} ...${read} whole=${whole.value} by=${by} />`
        : error ? html`<${Failed} error=${error} again=${again} />` : html`<${Loading} />`}
    </div>
  </div>`;
}

function Board({ range, report, whole, hour, trend, by }) {
  if (!whole.total.totalTokens) {
    return html`<${Empty} icon="coins" title="Nothing has been spent yet">
        <p>Usage appears here as soon as an agent's CLI records it.</p>
      <//>
      <div class="costs"><${BudgetCard} hour=${hour} whole=${whole} /></div>`;
  }
  const { total } = report;
  const given = total.totalTokens - total.outputTokens;
  return html`<div class="costs">
    <dl class="tiles">
      <${Tile} name="Estimated cost" value=${showCost(total.estimatedCostUsd)} note=${RANGE_WORDS[range]} />
      ${range !== "all" && html`<${Tile} name="In total" value=${showCost(whole.total.estimatedCostUsd)} note="as in the bar at the top" />`}
      <${Tile} name="This hour" value=${showCost(hour.total.estimatedCostUsd)} note="the last sixty minutes" />
      <${Tile} name="Tokens" value=${showCount(total.totalTokens)}
        note=${`${showCount(total.inputTokens)} in · ${showCount(total.outputTokens)} out`} />
      <${Tile} name="From cache" value=${showShare(total.cacheReadTokens, given)} note=${`${showCount(total.cacheReadTokens)} tokens from cache`} />
    </dl>
    <${Unpriced} report=${report} />
    <${TrendCard} trend=${trend} by=${by} onBy=${(value) => change({ by: value }, { replace: true })} />
    <${BudgetCard} hour=${hour} whole=${whole} />
    <div class="pair">
      <${SpentTable} title="Agents" rows=${report.byAgent} hrefOf=${(name) => link("costs", [], { range, by, select: `agent:${name}` })} />
      <${SpentTable} title="Models" rows=${report.byModel} />
    </div>
    <p class="faint small">All amounts are estimates from list prices as of ${report.pricesAsOf};
      ${" "}subscriptions are not taken into account.</p>
  </div>`;
}

function Tile({ name, value, note }) {
  return html`<div class="tile"><dt>${name}</dt><dd class="tabular">${value}</dd><dd class="faint">${note}</dd></div>`;
}

function Unpriced({ report }) {
  const { unpricedTokens } = report.total;
  if (!unpricedTokens) return null;
  const names = report.unpricedModels.map((name, at) => html`${at ? ", " : ""}<code>${name}</code>`);
  const isOne = names.length === 1;
  return html`<p class="note warn" role="note">
    ${isOne ? "The price of " : "The prices of "}${names}${isOne ? " is not known. Its " : " are not known. Their "}
    ${showNumber(unpricedTokens)} tokens are counted, and are in no sum of dollars. Give ${isOne ? "it a price" : "them prices"} in
    ${" "}<code>cost-models.json</code>.</p>`;
}

const showShare = (part, whole) => (whole ? `${Math.round((100 * part) / whole)} %` : "–");

/** Everything the page shows, read together, and again as tokens are used. What was read stays until the next is here. */
function useCosts(range) {
  const [state, setState] = useState({ read: null, error: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let isWanted = true;
    const readAll = () => readCosts(range).then(
      (read) => isWanted && setState({ read, error: null }),
      (error) => isWanted && setState((now) => ({ ...now, error })),
    );
    const again = atMostEvery(READ_MS, readAll);
    again();
    const undo = [onEvents(["tokens.used"], again), onReset(again)];
    return () => {
      isWanted = false;
      undo.forEach((each) => each());
    };
  }, [range, turn]);
  return { ...state, again: () => setTurn((now) => now + 1) };
}

async function readCosts(range) {
  const now = Date.now();
  const since = RANGES[range] === null ? null : now - RANGES[range];
  const [hour, report, trend, all] = await Promise.all([
    get("costs", { since: now - HOUR_MS }), get("costs", { since }),
    get("costs/trend", { since, until: now + 1, points: POINTS }), since === null ? null : get("costs"),
  ]);
  whole.value = all ?? report; // what the bar shows is never older than this
  return { range, hour, report, trend };
}
