// The panel of details: about the agent, the message or whatever else is selected. Files may add kinds of their own to the place "details".

import { html, useEffect } from "../lib/ui.js";
import { addShortcut } from "../lib/keys.js";
import { change, selection } from "../lib/router.js";
import { hasPart, Slot } from "../lib/slots.js";
import { Button } from "../parts/button.js";
import { AgentDetails } from "./agent-details.js";
import { MessageDetails } from "./message-details.js";

const kinds = { agent: ["Agent", AgentDetails], message: ["Message", MessageDetails] };

export function Details() {
  const chosen = selection.value;
  const isOpen = chosen !== null && (Object.hasOwn(kinds, chosen.kind) || hasPart("details", chosen.kind));
  useEffect(() => (isOpen ? addShortcut("Escape", "Close details", close) : undefined), [isOpen]);
  if (!isOpen) return null;
  const [title, component] = Object.hasOwn(kinds, chosen.kind) ? kinds[chosen.kind] : [chosen.kind[0].toUpperCase() + chosen.kind.slice(1), null];
  return html`<aside class="details" aria-label="Details">
    <header><h2>${title}</h2><${Button} kind="quiet" icon="x" label="Close details" keys="Esc" onClick=${close} /></header>
    <div class="scroll" key=${`${chosen.kind}:${chosen.id}`}>
      ${component ? html`<${component} id=${chosen.id} />` : html`<${Slot} place="details" kind=${chosen.kind} selection=${chosen} />`}
    </div>
  </aside>`;
}

const close = () => change({ select: null });
