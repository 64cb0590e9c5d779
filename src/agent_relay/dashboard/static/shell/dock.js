// The bar at the bottom of a phone.

import { html } from "../lib/ui.js";
import { go, link, viewId } from "../lib/router.js";
import { Count } from "../parts/badge.js";
import { Icon } from "../parts/icon.js";
import { Menu } from "../parts/menu.js";
import { views } from "../views/index.js";
import { showHelp } from "./help.js";

export function Dock() {
  const view = viewId.value;
  const more = views.filter((each) => !each.phone).map(({ id, title, icon }) => ({ label: title, icon, run: () => go(link(id)) }));
  const entries = [{ id: "agents", title: "Agents", icon: "robot" }, ...views.filter((each) => each.phone)];
  return html`<nav class="dock" aria-label="Views">
    ${entries.map((each) => html`<a key=${each.id} href=${link(each.id)} aria-current=${view === each.id ? "page" : undefined}>
      <${Icon} name=${each.icon} size=${20} />${each.title}${each.badge && html`<${Count} value=${each.badge()} tone=${each.badgeTone} />`}</a>`)}
    <${Menu} label="More" icon="more" class="dock-more" items=${[...more, { label: "Keyboard shortcuts", icon: "keyboard", run: showHelp }]}>More<//>
  </nav>`;
}
