// Keys that a phone's keyboard does not have, below a terminal whose keyboard is ours. Ctrl is for the next key.

import { html, signal } from "../lib/ui.js";
import { typeKeys } from "./terminals-keyboard.js";

const KEYS = [
  ["Esc", "\u001b", "Escape"], ["Tab", "\t", "Tab"], ["↑", "\u001b[A", "Up"], ["↓", "\u001b[B", "Down"], ["←", "\u001b[D", "Left"],
  ["→", "\u001b[C", "Right"], ["↵", "\r", "Enter"],
];

const isCtrl = signal(false);

/** With Ctrl, where that was pressed before: `c` is then what Ctrl-C sends. */
export function withCtrl(text) {
  if (!isCtrl.value || text.length !== 1) return text;
  isCtrl.value = false;
  const code = text.toUpperCase().charCodeAt(0);
  return code >= 64 && code < 96 ? String.fromCharCode(code & 31) : text;
}

export function KeyBar() {
  const keep = (event) => event.preventDefault(); // the terminal keeps the focus, and the phone its keyboard
  return html`<div class="key-bar" role="toolbar" aria-label="Keys">
    <button type="button" class="btn small" aria-pressed=${isCtrl.value} onPointerDown=${keep} onClick=${() => { isCtrl.value = !isCtrl.value; }}>Ctrl</button>
    ${KEYS.map(([sign, text, name]) => html`<button type="button" class="btn small" key=${name} aria-label=${name} onPointerDown=${keep} onClick=${() => typeKeys(text)}>${sign}</button>`)}
  </div>`;
}
