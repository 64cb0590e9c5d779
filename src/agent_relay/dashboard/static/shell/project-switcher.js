// Which project this is: its name and colour in the bar, and the way to the other relays of this person. Each lets browsers in by
// itself: where this one is not known yet, it asks for a code.

import { effect, html, useState } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { status } from "../lib/store.js";
import { orSay } from "../lib/toasts.js";
import { hueOf } from "../parts/avatar.js";
import { Menu } from "../parts/menu.js";

const EVERYWHERE = new Set(["0.0.0.0", "::"]);

effect(() => {
  const { project } = status.value ?? {};
  if (project) document.documentElement.style.setProperty("--project-hue", String(hueOf(project)));
});

/** A relay that listens everywhere is reached by the name that this page was reached by. */
function addressOf({ url, host }) {
  const address = new URL(url);
  if (EVERYWHERE.has(host)) address.hostname = location.hostname;
  return address.href;
}

export function Project() {
  const { projectName, project, you } = status.value ?? {};
  const [others, setOthers] = useState(null);
  if (!projectName) return null;
  const look = () => orSay(async () => setOthers((await get("projects")).projects));
  const items = (others ?? []).map((each) => ({
    label: each.name, icon: "panel", keys: plural(each.agents, "agent"), run: () => location.assign(addressOf(each)),
  }));
  const none = [{ label: others === null ? "Looking for others…" : "No other project's relay runs", icon: "minus", run: () => {} }];
  return html`<${Menu} label=${`Project ${projectName}, as ${you}. Other projects`} tip=${`${project} · you are ${you}`} icon=${null} align="start" class="project"
    onPointerEnter=${look} onFocus=${look} items=${items.length ? items : none}><i class="project-colour" aria-hidden="true" /><span class="clip">${projectName}</span><//>`;
}
