// Navigation and agents.

import { html } from "../lib/ui.js";
import { link, viewId } from "../lib/router.js";
import { Count } from "../parts/badge.js";
import { Icon } from "../parts/icon.js";
import { views } from "../views/index.js";
import { AgentList } from "./agent-list.js";

export function Sidebar() {
  return html`<aside class="sidebar" aria-label="Navigation and agents">
    <nav aria-label="Views"><ul>${views.map((view) => html`<li key=${view.id}><${ViewLink} ...${view} /></li>`)}</ul></nav>
    <${AgentList} />
  </aside>`;
}

function ViewLink({ id, title, icon, badge, badgeTone }) {
  const isHere = viewId.value === id;
  return html`<a class="row" href=${link(id)} aria-current=${isHere ? "page" : undefined}><${Icon} name=${icon} /><span class="clip">${title}</span>
    ${badge && html`<${Count} value=${badge()} tone=${badgeTone} />`}</a>`;
}
