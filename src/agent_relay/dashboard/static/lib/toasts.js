// Short notices that go away by themselves. `say("Copied.")`, `say("It failed.", { tone: "danger" })`.

import { signal } from "./ui.js";

const SHOWN_MS = 5_000;
const MOST = 4;
let number = 0;

/** What is shown now: [{ id, text, tone, action }], the newest last. */
export const toasts = signal([]);

/** `tone`: neutral, success, warning or danger. `action`: { label, run }. `stay`: until it is taken away. Returns its id. */
export function say(text, { tone = "neutral", action = null, stay = false } = {}) {
  const id = ++number;
  const repeated = toasts.value.filter((each) => each.text !== text);
  toasts.value = [...repeated, { id, text, tone, action }].slice(-MOST);
  if (!stay) setTimeout(() => unsay(id), tone === "danger" ? SHOWN_MS * 2 : SHOWN_MS);
  return id;
}

export function unsay(id) {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

/** Runs `work`; where it fails, says why. Returns what it returned, or undefined. */
export async function orSay(work) {
  try {
    return await work();
  } catch (error) {
    if (error.name !== "AbortError") say(error.message, { tone: "danger" });
    return undefined;
  }
}
