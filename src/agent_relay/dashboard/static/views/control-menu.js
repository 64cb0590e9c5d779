// What can be done to an agent, as a menu; what destroys something is asked about first.

import { html } from "../lib/ui.js";
import { Menu } from "../parts/menu.js";
import { controlsOf } from "./control-actions.js";

export function ControlMenu({ agent }) {
  const items = controlsOf(agent);
  return items.length ? html`<${Menu} label=${`Control ${agent.name}`} small items=${items} />` : null;
}
