// Keyboard shortcuts: registered with what they do, so that `?` can list them. A shortcut of two keys ("g c") is pressed one after the other.

import { signal } from "./ui.js";

const PAIR_MS = 1_200;

/** Every shortcut there is now, in the order of its group. */
export const shortcuts = signal([]);

let first = null;
let firstAt = 0;

/** `key` as in KeyboardEvent.key, with "Mod+" for Ctrl or Cmd; returns how to take it away. `group` is a heading of the help. */
export function addShortcut(key, does, run, { group = "Everywhere", whileTyping = false } = {}) {
  const entry = { key, does, run, group, whileTyping };
  shortcuts.value = [...shortcuts.value, entry];
  return () => { shortcuts.value = shortcuts.value.filter((each) => each !== entry); };
}

/** Several at once: [[key, does, run, options?], …]. */
export function addShortcuts(entries) {
  const undo = entries.map((entry) => addShortcut(...entry));
  return () => undo.forEach((each) => each());
}

const isTyping = (target) => target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest?.("[data-keys=own]");

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  const pressed = (event.ctrlKey || event.metaKey ? "Mod+" : "") + event.key;
  const pair = first !== null && event.timeStamp - firstAt < PAIR_MS ? `${first} ${pressed}` : null;
  const inDialog = document.querySelector("dialog[open]") !== null;
  const usable = shortcuts.value.filter((each) => (each.whileTyping || !isTyping(event.target)) && (!inDialog || each.group === "Dialog"));
  const found = usable.findLast((each) => each.key === pair) ?? usable.findLast((each) => each.key === pressed);
  first = !found && usable.some((each) => each.key.startsWith(`${pressed} `)) ? pressed : null;
  firstAt = event.timeStamp;
  if (!found) return;
  event.preventDefault();
  found.run(event);
});
