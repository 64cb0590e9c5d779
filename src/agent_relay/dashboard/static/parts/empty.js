// What a place shows while there is nothing in it, and what to do about it; and while it is being read, or could not be.

import { html } from "../lib/ui.js";
import { Button } from "./button.js";
import { Icon } from "./icon.js";

export function Empty({ icon, title, children }) {
  return html`<div class="empty"><span class="picture"><${Icon} name=${icon} size=${20} /></span><h2>${title}</h2>${children}</div>`;
}

export function Loading({ label = "Reading…" }) {
  return html`<div class="empty" role="status"><span class="spinner" /><span class="sr-only">${label}</span></div>`;
}

/** `error` is what was raised, `again` tries once more. */
export function Failed({ error, again }) {
  return html`<${Empty} icon="alert" title="This could not be loaded"><p>${error.message}</p>
    ${again && html`<${Button} icon="refresh" onClick=${again}>Try again<//>`}<//>`;
}
