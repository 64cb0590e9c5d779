// The graph as text: every pair and channel, the busiest first.

import { html } from "../lib/ui.js";
import { showAgo, showNumber } from "../lib/format.js";
import { link } from "../lib/router.js";
import { showName } from "../conversations/place.js";
import { Avatar } from "../parts/avatar.js";
import { Icon } from "../parts/icon.js";

export function GraphTable({ edges }) {
  const channels = new Map(edges.filter((each) => each.type === "channel").map((each) => [each.to, each]));
  const rows = [...edges.filter((each) => each.type === "pair"), ...channels.values()].sort((one, other) => other.count - one.count);
  return html`<div class="view-body"><table class="gr-table"><caption class="sr-only">Conversations</caption>
    <thead><tr><th scope="col">Between</th><th scope="col" class="number">Messages</th><th scope="col" class="number">Last</th></tr></thead>
    <tbody>
      ${rows.map((edge) => html`<tr key=${edge.id}>
        <th scope="row">${edge.type === "pair" ? html`<${Pair} edge=${edge} />` : html`<${Channel} name=${edge.to} />`}</th>
        <td class="number">${showNumber(edge.count)}</td><td class="number faint">${showAgo(edge.at)}</td>
      </tr>`)}
      ${!rows.length && html`<tr><td colspan="3" class="faint">No messages yet.</td></tr>`}
    </tbody>
  </table></div>`;
}

const Pair = ({ edge: { id, from, to } }) => html`<a class="line" href=${link("conversations", ["pair", id])}>
  <${Avatar} name=${from} size=${22} /><${Avatar} name=${to} size=${22} /><span class="clip">${showName(from)} and ${showName(to)}</span>
</a>`;

const Channel = ({ name }) => html`<a class="line" href=${link("conversations", ["channel", name])}>
  <${Icon} name="hash" /><span class="clip">${name}</span>
</a>`;
