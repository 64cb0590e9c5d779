// Places in the page that other files add to: `addTo("agent-actions", Buttons)`. Each part is a component that gets what the place is about.
//
// topbar, topbar-end, front: {} · agent-actions, agent-details: { agent } · message-actions, message-details: { message } · details: { selection }, keyed by kind

import { html, signal } from "./ui.js";

const parts = signal([]);

/** `order` sorts, smaller first; `kind` is for the place "details" alone. */
export function addTo(place, component, { order = 50, kind = null } = {}) {
  parts.value = [...parts.value, { place, component, order, kind }].sort((one, other) => one.order - other.order);
}

/** What was added to a place, in order. */
export function Slot({ place, kind = null, ...about }) {
  const here = parts.value.filter((each) => each.place === place && (kind === null || each.kind === kind));
  return here.map(({ component }) => html`<${component} ...${about} />`);
}

export const hasPart = (place, kind) => parts.value.some((each) => each.place === place && each.kind === kind);
