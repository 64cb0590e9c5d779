// Shows the notices of lib/toasts.js.

import { html } from "../lib/ui.js";
import { toasts, unsay } from "../lib/toasts.js";
import { Button } from "./button.js";
import { Icon } from "./icon.js";

const icons = { neutral: "bubble", success: "check", warning: "warning", danger: "alert" };

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.value.map(({ id, text, tone, action }) => html`<div class=${`toast ${tone}`} key=${id}>
      <${Icon} name=${icons[tone]} size=${18} /><p>${text}</p>
      ${action && html`<${Button} kind="quiet" small onClick=${() => { unsay(id); action.run(); }}>${action.label}<//>`}
      <${Button} kind="quiet" small icon="x" label="Dismiss" onClick=${() => unsay(id)} />
    </div>`)}
  </div>`;
}
