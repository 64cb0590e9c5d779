// Light or dark: as the system says, until the person chooses. `theme-first.js` applies the choice before the first paint.

import { signal } from "./ui.js";

const KEY = "agent-relay.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

/** "system", "light" or "dark". */
export const choice = signal(localStorage.getItem(KEY) ?? "system");
/** What is shown: "light" or "dark". Charts and terminals read their colours anew when it changes. */
export const theme = signal(current());

dark.addEventListener("change", apply);
addEventListener("beforeprint", () => { document.documentElement.dataset.theme = "light"; }); // paper is
addEventListener("afterprint", apply);

export function choose(next) {
  choice.value = next;
  if (next === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, next);
  apply();
}

export const toggle = () => choose(theme.value === "dark" ? "light" : "dark");

/** The value of a custom property, such as "--accent", in the theme that is shown. */
export const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function current() {
  return choice.value === "system" ? (dark.matches ? "dark" : "light") : choice.value;
}

function apply() {
  document.documentElement.dataset.theme = current();
  theme.value = current();
}
