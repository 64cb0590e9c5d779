// A decision that is about to be sent: how long it can still be taken back, and the button that does.

import { html } from "../lib/ui.js";
import { decisions, undo } from "../lib/decisions.js";
import { viewId } from "../lib/router.js";
import { Button } from "./button.js";

export function Undo({ entry }) {
  const words = entry.isSending ? `${entry.doing}…` : `${entry.doing} in ${entry.secondsLeft} s`;
  return html`<div class="undo line" role="status" data-undo=${entry.id}>
    <span class="spinner" /><strong class="tabular grow">${words}</strong>
    <${Button} kind="primary" disabled=${entry.isSending} keys="u" onClick=${() => undo(entry.id)}>Undo <kbd>u</kbd><//></div>`;
}

/** In every view but the one whose cards show it themselves. */
export function UndoBar() {
  if (viewId.value === "inbox" || !decisions.value.size) return null;
  return html`<div class="undo-bar">${[...decisions.value.values()].map((entry) => html`<div class="toast" key=${entry.id}>
    <p class="grow"><strong>${entry.agentName}</strong><${Undo} entry=${entry} /></p></div>`)}</div>`;
}
