// Who talks to whom as a matrix, where there are too many for a picture: those of a channel together, whoever is silent folded away.

import { classes, html, useState } from "../lib/ui.js";
import { plural, showNumber } from "../lib/format.js";
import { link } from "../lib/router.js";
import { showName } from "../conversations/place.js";
import { Button } from "../parts/button.js";

const MOST = 80; // the busiest: more cells than that nobody reads

/** [{ channel, names }] of those who talk, the busiest first; "" has those in no channel. */
export function clustersOf(nodes, most = MOST) {
  const talking = nodes.filter((each) => !each.isChannel && each.total > 0).sort((one, other) => other.total - one.total).slice(0, most);
  const found = Map.groupBy(talking, ({ agent }) => [...(agent?.channels ?? [])].filter((name) => name !== "#general").sort()[0] ?? "");
  return [...found].map(([channel, members]) => ({ channel, names: members.map(({ id }) => id) }))
    .sort((one, other) => (one.channel === "") - (other.channel === "") || other.names.length - one.names.length);
}

export function GraphMatrix({ nodes, edges }) {
  const [showsSilent, setShowsSilent] = useState(false);
  const clusters = clustersOf(nodes);
  const names = clusters.flatMap((each) => each.names);
  const silent = nodes.filter((each) => !each.isChannel && each.total === 0).map(({ id }) => id).sort();
  const rest = nodes.filter((each) => !each.isChannel && each.total > 0).length - names.length;
  const pairs = new Map(edges.filter(({ type }) => type === "pair").flatMap((edge) => [[`${edge.from} ${edge.to}`, edge], [`${edge.to} ${edge.from}`, edge]]));
  const most = Math.max(1, ...edges.filter(({ type }) => type === "pair").map(({ count }) => count));
  return html`<div class="view-body"><div class="gr-matrix-scroll" tabindex="0" role="region" aria-label="Who talks to whom">
    <table class="gr-matrix"><caption class="sr-only">Messages between each two agents</caption>
      <thead><tr><td></td>${names.map((name) => html`<th key=${name} scope="col"><span title=${name}>${showName(name)}</span></th>`)}</tr></thead>
      ${clusters.map(({ channel, names: own }) => html`<tbody key=${channel} data-cluster=${channel || "none"}>
        <tr class="gr-cluster"><th scope="rowgroup" colspan=${names.length + 1}>${channel || "In no channel"} <span class="faint">${plural(own.length, "agent")}</span></th></tr>
        ${own.map((name) => html`<tr key=${name}><th scope="row"><a href=${link("agent", [name])}>${showName(name)}</a></th>
          ${names.map((other) => html`<${Cell} key=${other} edge=${pairs.get(`${name} ${other}`)} isSelf=${name === other} most=${most} />`)}</tr>`)}</tbody>`)}
    </table></div>
    ${rest > 0 && html`<p class="faint">${plural(rest, "agent")} that talk less are left out; the table has them.</p>`}
    ${silent.length > 0 && html`<div class="gr-silent"><${Button} kind="quiet" small aria-expanded=${showsSilent} onClick=${() => setShowsSilent(!showsSilent)}>
      ${showsSilent ? "Hide" : "Show"} ${plural(silent.length, "agent")} that said nothing<//>
      ${showsSilent && html`<p>${silent.map((name) => html`<a key=${name} href=${link("agent", [name])}>${showName(name)}</a> `)}</p>`}</div>`}
  </div>`;
}

function Cell({ edge, isSelf, most }) {
  if (!edge) return html`<td class=${classes(isSelf && "self")}></td>`;
  const share = Math.log1p(edge.count) / Math.log1p(most);
  const words = `${showName(edge.from)} and ${showName(edge.to)}: ${plural(edge.count, "message")}`;
  return html`<td style=${{ "--share": `${Math.round(15 + 75 * share)}%` }}><a href=${link("conversations", ["pair", edge.id])} title=${words} aria-label=${words}>${edge.count < 1_000 ? showNumber(edge.count) : "…"}</a></td>`;
}
