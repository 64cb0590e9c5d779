// Costs over time as stacked bars, by model or by agent; the same as a table for whoever cannot see them.

import { html, useEffect, useRef, useState } from "../lib/ui.js";
import uPlot from "../vendor/uplot/uplot.js";
import { showCost, showMoment } from "../lib/format.js";
import { theme, token } from "../lib/theme.js";
import { hueOf } from "../parts/avatar.js";
import { Button } from "../parts/button.js";
import { Tabs } from "../parts/tabs.js";

const HEIGHT = 220;
const MOST_SERIES = 7; // the rest is shown as one: more colours cannot be told apart

export function TrendCard({ trend, by, onBy }) {
  const [asTable, setAsTable] = useState(false);
  const series = pickSeries(by === "agent" ? trend.byAgent : trend.byModel, by);
  return html`<section class="card trend"><header><h2>Over time</h2><div class="tools">
      <${Tabs} label="Group by" value=${by} options=${[{ value: "model", label: "Model" }, { value: "agent", label: "Agent" }]} onChange=${onBy} />
      <${Button} kind="quiet" icon="panel" label=${asTable ? "Show as a chart" : "Show as a table"} aria-pressed=${asTable}
        onClick=${() => setAsTable(!asTable)} />
    </div></header>
    <div class="body">
      ${asTable ? html`<${TrendTable} trend=${trend} series=${series} />`
        : html`<${Chart} trend=${trend} series=${series} mode=${theme.value} /><${Legend} series=${series} />`}
    </div>
  </section>`;
}

const Legend = ({ series }) => html`<ul class="legend">${series.map(({ name, colour, sum }) => html`<li key=${name}>
  <i style=${{ background: colour }} /><span class="clip">${name}</span><span class="tabular muted">${showCost(sum)}</span>
</li>`)}</ul>`;

/** The most expensive first; what is beyond the colours is one series. */
function pickSeries(costs, by) {
  const all = Object.entries(costs).map(([name, values]) => ({ name, values, sum: add(values) })).sort((one, other) => other.sum - one.sum);
  const rest = all.splice(MOST_SERIES);
  const colourOf = (name, at) => (by === "agent" ? `oklch(${token("--hue-line")} ${hueOf(name)})` : token(`--series-${at + 1}`));
  const shown = all.map((each, at) => ({ ...each, colour: colourOf(each.name, at) }));
  if (!rest.length) return shown;
  const values = rest[0].values.map((_, step) => add(rest.map((each) => each.values[step])));
  return [...shown, { name: `${rest.length} others`, values, sum: add(values), colour: token("--text-3") }];
}

const add = (values) => values.reduce((sum, value) => sum + value, 0);

function Chart({ trend, series, mode }) {
  const place = useRef(null);
  const plot = useRef(null);
  const shape = `${mode}|${series.map((each) => each.name + each.colour).join("|")}`;
  const now = useRef({});
  now.current = { trend, series };
  useEffect(() => {
    const tip = document.createElement("div");
    tip.className = "chart-tip";
    const element = place.current;
    const width = () => Math.max(240, element.clientWidth);
    plot.current = new uPlot(options(width(), now, tip), stack(trend, series), element);
    plot.current.over.append(tip);
    const observer = new ResizeObserver(() => plot.current.setSize({ width: width(), height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current.destroy();
    };
  }, [shape]);
  useEffect(() => { plot.current?.setData(stack(trend, series)); }, [trend, shape]);
  const parts = series.map((each) => `${each.name} ${showCost(each.sum)}`).join(", ");
  const about = `Cost from ${showMoment(trend.since)} to ${showMoment(trend.until)}: ${showCost(add(trend.costUsd))}. ${parts}.`;
  return html`<div class="chart" ref=${place} role="img" aria-label=${about} />`;
}

/** uPlot draws one series over the other, so each is the sum of itself and those after it, and the whole comes first. */
function stack(trend, series) {
  const times = trend.costUsd.map((_, step) => (trend.since + (step + 0.5) * trend.stepMs) / 1_000);
  const sums = series.map((_, at) => times.map((__, step) => add(series.slice(at).map((each) => each.values[step]))));
  return [times, ...(sums.length ? sums : [times.map(() => 0)])];
}

function options(width, now, tip) {
  const text = token("--text-3");
  const axis = { stroke: text, font: `11px ${token("--font")}`, ticks: { show: false }, grid: { stroke: token("--border"), width: 1 } };
  const bars = uPlot.paths.bars({ size: [0.72, 28], radius: [0.18, 0] });
  const { series } = now.current;
  const drawn = series.length ? series : [{ colour: text }];
  const plain = (format) => [format, null, null, null, null, null, null, 1]; // the same at every tick, without a second line
  return {
    width, height: HEIGHT, padding: [12, 8, 0, 0], legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: { x: { range: () => edges(now.current.trend) }, y: { range: (_, __, most) => [0, (most || 0.01) * 1.08] } },
    axes: [
      {
        ...axis, grid: { show: false }, size: 30, space: 72,
        values: [[86_400, ...plain("{MMM} {D}")], [60, ...plain("{HH}:{mm}")], [1, ...plain("{HH}:{mm}:{ss}")]],
      },
      { ...axis, size: 60, space: 44, values: (_, ticks) => ticks.map(showTick) },
    ],
    series: [{}, ...drawn.map(({ colour }) => ({ stroke: colour, fill: colour, width: 0, paths: bars, points: { show: false } }))],
    hooks: { setCursor: [(plot) => showTip(plot, now.current, tip)] },
  };
}

const edges = ({ since, stepMs, costUsd }) => [since / 1_000, (since + costUsd.length * stepMs) / 1_000];

const showTick = (usd) => (usd === 0 ? "$0" : `$${usd.toLocaleString(undefined, { maximumFractionDigits: usd < 1 ? 3 : 2 })}`);

function showTip(plot, { trend, series }, tip) {
  const { idx, left } = plot.cursor;
  const isOver = left >= 0 && idx !== null && idx !== undefined && trend.costUsd[idx] > 0;
  tip.hidden = !isOver;
  if (!isOver) return;
  const lines = series.filter((each) => each.values[idx] > 0).map((each) => row(each.name, showCost(each.values[idx]), each.colour));
  const from = trend.since + idx * trend.stepMs;
  const heading = document.createElement("strong");
  heading.textContent = showMoment(from);
  tip.replaceChildren(heading, ...lines, row("Together", showCost(trend.costUsd[idx])));
  const x = plot.valToPos(plot.data[0][idx], "x");
  tip.style.left = `${x + tip.offsetWidth + 20 > plot.over.clientWidth ? Math.max(0, x - tip.offsetWidth - 14) : x + 14}px`;
}

function row(name, value, colour) {
  const line = document.createElement("div");
  const mark = document.createElement("i");
  mark.style.background = colour ?? "transparent";
  const label = document.createElement("span");
  label.textContent = name;
  const amount = document.createElement("b");
  amount.textContent = value;
  line.append(mark, label, amount);
  return line;
}

function TrendTable({ trend, series }) {
  const isUsed = ({ step, usd }) => usd > 0 || trend.unpricedTokens[step] > 0;
  const steps = trend.costUsd.map((usd, step) => ({ step, usd })).filter(isUsed).reverse();
  return html`<div class="scroll"><table class="figures"><caption class="sr-only">Cost over time</caption>
    <thead><tr><th scope="col">From</th>
      ${[...series.map((each) => each.name), "Together"].map((name) => html`<th scope="col" class="number" key=${name}>${name}</th>`)}</tr></thead>
    <tbody>${steps.map(({ step, usd }) => html`<tr key=${step}>
      <th scope="row">${showMoment(trend.since + step * trend.stepMs)}</th>
      ${series.map((each) => html`<td class="number" key=${each.name}>${each.values[step] ? showCost(each.values[step]) : "–"}</td>`)}
      <td class="number strong">${showCost(usd)}${trend.unpricedTokens[step] > 0 && html` <span class="faint">plus unpriced tokens</span>`}</td>
    </tr>`)}</tbody>
  </table></div>`;
}
