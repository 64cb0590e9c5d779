// What needs a person, at one glance: the inbox, cost, the daemon, and whether the page is live.

import { classes, html } from "../lib/ui.js";
import { plural, showCost, showDuration, showNumber } from "../lib/format.js";
import { countsByKind, inboxCount } from "../lib/inbox.js";
import { connection, reconnectNow } from "../lib/live.js";
import { link } from "../lib/router.js";
import { Slot } from "../lib/slots.js";
import { costs, status } from "../lib/store.js";
import { theme, toggle } from "../lib/theme.js";
import { Button } from "../parts/button.js";
import { Icon } from "../parts/icon.js";
import { Tip } from "../parts/tooltip.js";
import { showHelp } from "./help.js";
import { Project } from "./project-switcher.js";

const states = {
  connecting: ["Connecting", "Connecting to the daemon."],
  live: ["Live", "Events are shown as they happen."],
  replaying: ["Replaying", "Catching up on missed events."],
  reconnecting: ["Reconnecting", "The daemon does not respond; the page keeps trying. Press to try now."],
};

export function Topbar() {
  return html`<header class="topbar">
    <a class="brand" href=${link("conversations")} aria-label="Agent Relay"><${Mark} /><span>Agent Relay</span></a>
    <${Project} />
    <div class="facts-bar">
      <${Slot} place="topbar" />
      <${Inbox} /><${Cost} /><${Daemon} />
      <span class="gap wide" /><${Connection} />
      <${Slot} place="topbar-end" /><${ThemeButton} />
      <${Button} kind="quiet" icon="help" label="Keyboard shortcuts" keys="?" class="wide" onClick=${showHelp} />
    </div>
  </header>`;
}

function Mark() {
  return html`<svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" fill="var(--accent)" />
    <path d="M9 12h9.500a4.500 4.500 0 0 1 0 9H12M12.500 8.500 9 12l3.500 3.500" fill="none" stroke="var(--on-accent)" stroke-width="2.600"
      stroke-linecap="round" stroke-linejoin="round" />
    <circle cx="9.500" cy="21" r="1.900" fill="var(--on-accent)" />
  </svg>`;
}

function ThemeButton() {
  const [icon, label] = theme.value === "dark" ? ["sun", "Light theme"] : ["moon", "Dark theme"];
  return html`<${Button} kind="quiet" icon=${icon} label=${label} keys="t" onClick=${toggle} />`;
}

function Inbox() {
  const count = inboxCount.value;
  const text = countsByKind.value.map(([size, one, many]) => plural(size, one, many)).join(", ") || "Nothing needs you.";
  return html`<${Tip} text=${text}>
    <a class=${classes("stat", count && "urgent", !count && "wide")} href=${link("inbox")}>
      <${Icon} name="bell" /><b>${count}</b><span class="wide">in your inbox</span><span class="sr-only">${text}</span>
    </a>
  <//>`;
}

function Cost() {
  if (!costs.value) return null;
  const { total } = costs.value; // the same that the view Costs shows
  const unpriced = total.unpricedTokens;
  const text = `${showNumber(total.totalTokens)} tokens${unpriced ? `, ${showNumber(unpriced)} of them without a known price` : ""}.`;
  return html`<${Tip} text=${text}>
    <a class="stat" href=${link("costs", [], { range: "all" })}>
      <${Icon} name="coins" /><span class="sr-only">Total cost </span><b>${showCost(total.estimatedCostUsd)}</b>
    </a>
  <//>`;
}

function Daemon() {
  const now = status.value;
  const { state } = connection.value;
  if (state === "connecting" || !now) return null;
  const isUp = state !== "reconnecting";
  const text = `Version ${now.version}, up for ${showDuration(now.uptimeMs)}, ${showNumber(now.messages)} messages stored.`;
  return html`<${Tip} text=${text}>
    <span class="stat wide" tabindex="0"><span class=${classes("dot", isUp ? "live" : "dead")} />Daemon ${isUp ? "up" : "down"}</span>
  <//>`;
}

function Connection() {
  const { state } = connection.value;
  const [word, text] = states[state];
  return html`<${Tip} text=${text}>
    <button type="button" class="stat" data-connection=${state} onClick=${reconnectNow} aria-label=${`Connection: ${word}`}>
      <span class=${classes("dot", state)} /><span>${word}</span>
    </button>
  <//>`;
}
