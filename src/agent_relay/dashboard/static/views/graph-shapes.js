// The shapes of the graph: an edge between two places, and a node.

import { classes, html } from "../lib/ui.js";
import { plural, showAgo, showNumber } from "../lib/format.js";
import { link, select, selection } from "../lib/router.js";
import { showName } from "../conversations/place.js";
import { hueOf, lettersOf } from "../parts/avatar.js";

export const LARGEST = 21; // radius of a node
const THICKEST = 7;
const FRESH_MS = 60_000; // so long an edge shows that it was just used

/** By the power of two: ten times as many messages are an edge that is a little thicker. */
const thickness = (edge) => (edge.type === "pair" ? Math.min(THICKEST, 1 + 0.42 * Math.log2(1 + edge.count)) : 1.25);

/** `faint` is how much of it is seen while nobody points at it. */
export function Edge({ edge, from, to, faint, isNear }) {
  if (!from || !to) return null;
  const line = { x1: from.x, y1: from.y, x2: to.x, y2: to.y };
  const isPair = edge.type === "pair";
  const about = isPair
    ? `${showName(edge.from)} and ${showName(edge.to)}: ${plural(edge.count, "message")}, the last ${showAgo(edge.at)}`
    : `${showName(edge.from)} listens to ${edge.to}`;
  const href = isPair ? link("conversations", ["pair", edge.id]) : link("conversations", ["channel", edge.to]);
  const isFresh = Date.now() - edge.at < FRESH_MS;
  return html`<a class=${classes("gr-edge", edge.type, isFresh && "fresh", isNear && "near")} href=${href} aria-label=${about} data-edge=${edge.id}>
    <title>${about}</title>
    <line class="reach" ...${line} />
    <line class="seen" ...${line} stroke-opacity=${isNear ? 1 : faint} stroke-width=${thickness(edge)} />
  </a>`;
}

/** `near` is a signal of the node that is pointed at; `isAway` are those that have nothing to do with it. */
export function Node({ node, place, radius, isNamed, isAway, near }) {
  if (!node || !place) return null;
  const { id, isChannel, state, total } = node;
  const isChosen = selection.value?.kind === "agent" && selection.value.id === id;
  const about = [plural(total, "message"), !isChannel && state].filter(Boolean).join(", ");
  const open = (event) => {
    if (isChannel) return;
    event.preventDefault();
    select("agent", id);
  };
  const point = () => { near.value = id; };
  const leave = () => { near.value = null; };
  return html`<a class=${classes("gr-node", isChannel ? "channel" : state, isChosen && "chosen", isAway && "away")}
    data-node=${id} aria-description=${about} href=${link("conversations", [isChannel ? "channel" : "agent", id])} draggable="false" onClick=${open}
    transform=${`translate(${place.x} ${place.y})`} style=${{ "--hue": hueOf(id) }}
    onPointerEnter=${point} onPointerLeave=${leave} onFocus=${point} onBlur=${leave}>
    ${isChannel ? html`<${Pill} text=${id} />` : html`<${Face} name=${showName(id)} radius=${radius} total=${total} isNamed=${isNamed} />`}
  </a>`;
}

function Pill({ text }) {
  const wide = 26 + text.length * 7;
  return html`<rect class="face" x=${-wide / 2} y="-14" width=${wide} height="28" rx="14" /><text class="gr-letters" dy="0.35em">${text}</text>`;
}

function Face({ name, radius, total, isNamed }) {
  return html`<circle class="ring" r=${radius + 3.5} /><circle class="face" r=${radius} />
    <text class="gr-letters" dy="0.35em" aria-hidden="true" font-size=${radius * 0.62}>${lettersOf(name)}</text>
    <text class=${classes("name", !isNamed && "unseen")} y=${radius + 17}>${name}</text>
    ${total > 0 && radius === LARGEST && html`<text class="count" y=${radius + 31}>${showNumber(total)}</text>`}`;
}
