// A small label. `tone`: neutral, accent, ok, warn, danger, info, solid, outline.

import { classes, html } from "../lib/ui.js";
import { Icon } from "./icon.js";

export function Badge({ tone = "neutral", icon, children, ...rest }) {
  return html`<span class=${classes("badge", tone)} ...${rest}>${icon && html`<${Icon} name=${icon} size=${12} />`}${children}</span>`;
}

/** A count that is not shown while it is zero. */
export function Count({ value, tone = "neutral", label }) {
  if (!value) return null;
  return html`<span class=${classes("badge", tone)}>${value > 999 ? "999+" : value}${label && html`<span class="sr-only"> ${label}</span>`}</span>`;
}
