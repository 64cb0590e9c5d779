// The keyboard of a terminal: taken for a while and kept by asking again, so that a closed laptop lets go of it by itself. While it is held,
// messages wait. Keys are sent one request after the other, so that they arrive in the order they were pressed.

import { signal } from "../lib/ui.js";
import { part, post } from "../lib/api.js";
import { orSay, say } from "../lib/toasts.js";

/** The agent whose keyboard is ours; null for none. */
export const keyboardOf = signal(null);

let lease = null;
let timer = 0;
let unsent = "";
let sending = null;

export async function takeKeyboard(agent, force = false) {
  await releaseKeyboard();
  try {
    hold(agent, await ask(agent, { force }));
  } catch (error) {
    if (error.details?.reason !== "keyboard_held") throw error;
    say(error.message, { tone: "warning", action: { label: "Take it anyway", run: () => orSay(() => takeKeyboard(agent, true)) } });
  }
}

export async function releaseKeyboard() {
  const agent = keyboardOf.value;
  if (agent === null) return;
  const { holder } = lease;
  letGo();
  await sending;
  await post(`agents/${part(agent)}/keyboard/release`, { holder }, { keepalive: true }).catch(() => {}); // else it runs out
}

/** Types; what is pressed while a request is under way goes with the next one. */
export function typeKeys(text) {
  if (keyboardOf.value === null) return;
  unsent += text;
  sending ??= send(keyboardOf.value).finally(() => { sending = null; });
}

async function send(agent) {
  while (unsent) {
    const text = unsent;
    unsent = "";
    try {
      await post(`agents/${part(agent)}/input`, { text });
    } catch (error) {
      unsent = "";
      say(error.message, { tone: "danger" });
    }
  }
}

const ask = (agent, body) => post(`agents/${part(agent)}/keyboard`, body);

function hold(agent, granted) {
  lease = granted;
  keyboardOf.value = agent;
  timer = setTimeout(keep, granted.leaseMs / 3, agent);
}

async function keep(agent) {
  try {
    const granted = await ask(agent, { holder: lease.holder });
    if (keyboardOf.value === agent) hold(agent, granted);
  } catch (error) {
    if (keyboardOf.value !== agent) return;
    if (error.retryable && Date.now() < lease.expiresAt) timer = setTimeout(keep, 1_000, agent);
    else {
      letGo();
      say(`You no longer have the keyboard of ${agent}. ${error.message}`, { tone: "warning" });
    }
  }
}

function letGo() {
  clearTimeout(timer);
  keyboardOf.value = null;
}

addEventListener("pagehide", releaseKeyboard);
