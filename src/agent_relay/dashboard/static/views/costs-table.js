// Who or what spent how much, the most expensive first.

import { html } from "../lib/ui.js";
import { showCost, showCount, showNumber } from "../lib/format.js";
import { showName } from "../conversations/place.js";
import { Avatar } from "../parts/avatar.js";
import { Badge } from "../parts/badge.js";

const byCost = ([, one], [, other]) => (other.estimatedCostUsd ?? 0) - (one.estimatedCostUsd ?? 0) || other.totalTokens - one.totalTokens;

/** `hrefOf` leads to an agent by its name; models have none. */
export function SpentTable({ title, rows, hrefOf }) {
  const sorted = Object.entries(rows).sort(byCost);
  const most = Math.max(...sorted.map(([, each]) => each.estimatedCostUsd ?? 0), 0);
  return html`<section class="card spent"><header><h2>${title}</h2><span class="faint tabular">${sorted.length}</span></header>
    <div class="scroll"><table>
      <thead><tr><th scope="col">${title.slice(0, -1)}</th>
        ${["Input", "Output", "Cache", "Cost"].map((name) => html`<th scope="col" class="number" key=${name}>${name}</th>`)}</tr></thead>
      <tbody>
        ${sorted.map(([name, spent]) => html`<${Row} key=${name} name=${name} spent=${spent} most=${most} href=${hrefOf?.(name)} />`)}
        ${!sorted.length && html`<tr><td colspan="5" class="faint">No usage in this period.</td></tr>`}
      </tbody>
    </table></div></section>`;
}

function Row({ name, spent, most, href }) {
  const share = most ? (100 * (spent.estimatedCostUsd ?? 0)) / most : 0;
  return html`<tr>
    <th scope="row">
      <span class="line">${href && html`<${Avatar} name=${showName(name)} size=${20} />`}
        <span class="clip" title=${name}>${href ? html`<a href=${href}>${showName(name)}</a>` : name}</span></span>
      <span class="share"><i style=${{ width: `${share}%` }} /></span>
    </th>
    <${Tokens} count=${spent.inputTokens} /><${Tokens} count=${spent.outputTokens} />
    <${Tokens} count=${spent.cacheReadTokens + spent.cacheWriteTokens} />
    <td class="number strong">${spent.estimatedCostUsd === null ? html`<${Badge} tone="warn">no price<//>` : showCost(spent.estimatedCostUsd)}</td>
  </tr>`;
}

const Tokens = ({ count }) => html`<td class="number" title=${`${showNumber(count)} tokens`}>${showCount(count)}</td>`;
