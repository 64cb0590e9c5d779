// A button, or a link that looks like one. `kind`: plain, primary, quiet, danger. An icon alone needs a `label`, which is also its tooltip.

import { classes, html } from "../lib/ui.js";
import { Icon } from "./icon.js";
import { Tip } from "./tooltip.js";

export function Button({ kind = "plain", icon, label, small = false, href, children, class: extra, tip, keys, type = "button", ...rest }) {
  const isBare = icon && !children;
  const name = classes("btn", kind !== "plain" && kind, small && "small", isBare && "icon", extra);
  const inside = html`${icon && html`<${Icon} name=${icon} size=${small ? 15 : 16} />`}${children}`;
  const element = href
    ? html`<a class=${name} href=${href} aria-label=${label} ...${rest}>${inside}</a>`
    : html`<button type=${type} class=${name} aria-label=${label} ...${rest}>${inside}</button>`;
  const words = tip ?? (isBare ? label : null);
  return words ? html`<${Tip} text=${words} keys=${keys}>${element}<//>` : element;
}
