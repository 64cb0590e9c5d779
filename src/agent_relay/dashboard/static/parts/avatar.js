// Who it is, by letters and a colour of its own that stays the same everywhere; with a state, also a dot.

import { classes, html } from "../lib/ui.js";

const HUES = 12; // few enough that two are either the same or clearly not

/** The hue of a name, in degrees; lines in charts may use `oklch(var(--hue-line) ${hueOf(name)})`. */
export function hueOf(name) {
  let sum = 2_166_136_261;
  for (const sign of name) sum = Math.imul(sum ^ sign.codePointAt(0), 16_777_619);
  return (((sum >>> 11) % HUES) * 360) / HUES;
}

export function lettersOf(name) {
  const words = name.split(/[^\p{L}\p{N}]+|(?<=\p{Ll})(?=\p{Lu})/u).filter(Boolean);
  const letters = words.length > 1 ? words[0][0] + words[1][0] : (words[0] ?? "?").slice(0, 2);
  return letters[0].toUpperCase() + letters.slice(1);
}

export function Avatar({ name, state, size = 28 }) {
  return html`<span class="avatar" style=${{ "--hue": hueOf(name), "--size": `${size}px` }} aria-hidden="true">
    ${lettersOf(name)}${state && html`<span class=${classes("dot", state)} />`}
  </span>`;
}
