// The list of keyboard shortcuts, opened with "?".

import { html, signal } from "../lib/ui.js";
import { shortcuts } from "../lib/keys.js";
import { Dialog } from "../parts/dialog.js";

const isOpen = signal(false);

export const showHelp = () => { isOpen.value = true; };

export function Help() {
  if (!isOpen.value) return null;
  const groups = Map.groupBy(shortcuts.value, (each) => each.group);
  return html`<${Dialog} title="Keyboard shortcuts" width=${640} class="help" onClose=${() => { isOpen.value = false; }}>
    <div class="help-groups">${[...groups].map(([group, entries]) => html`<${Group} key=${group} group=${group} entries=${entries} />`)}</div>
  <//>`;
}

function Group({ group, entries }) {
  return html`<section><h3>${group}</h3><dl>
    ${entries.map(({ key, does }) => html`<div key=${key + does}><dt>${does}</dt><dd>${key.split(" ").map(showKey)}</dd></div>`)}
  </dl></section>`;
}

const signs = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc", Enter: "↵", " ": "Space" };
export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

function showKey(key) {
  const keys = key === "Mod+" ? [key] : key.split(/\+(?=.)/);
  return keys.map((each) => html`<kbd key=${each}>${each === "Mod" ? (isMac ? "⌘" : "Ctrl") : (signs[each] ?? each)}</kbd>`);
}
