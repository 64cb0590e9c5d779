// A terminal with its frame: whose it is, what that agent does, and the keyboard.

import { classes, html, useState } from "../lib/ui.js";
import { select } from "../lib/router.js";
import { orSay } from "../lib/toasts.js";
import { Avatar } from "../parts/avatar.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { dotOf, stateOf } from "../shell/agent-list.js";
import { ControlMenu } from "./control-menu.js";
import { keyboardOf, releaseKeyboard, takeKeyboard } from "./terminals-keyboard.js";
import { Screen } from "./terminals-screen.js";

const words = { starting: "Starting", idle: "Idle", working: "Working", waiting: "Waiting for you", offline: "Offline" };
const tones = { waiting: "warn", working: "info", starting: "info", idle: "ok", offline: "neutral" };

export function Pane({ agent, name, room, isLarge, onLarge, onClose }) {
  const [title, setTitle] = useState("");
  const isOurs = keyboardOf.value === name;
  const state = agent ? stateOf(agent) : "offline";
  const dot = agent && !isOurs ? dotOf(agent) : state; // whoever types has paused it
  return html`<section class=${classes("pane", isOurs && "ours")} aria-label=${`Terminal of ${name}`}>
    <header>
      <${Avatar} name=${name} state=${dot} size=${22} />
      <button type="button" class="pane-name clip" onClick=${() => select("agent", name)}>${name}</button>
      <${Badge} tone=${tones[state]}>${words[state]}<//>
      ${agent?.paused && !isOurs && html`<${Badge} tone="warn" icon="pause">Paused<//>`}
      ${isOurs
        ? html`<span class="clip grow hands-note"><span>You have the keyboard; messages wait.</span> <kbd>Shift</kbd><kbd>Esc</kbd> <span>releases it</span></span>`
        : html`<span class="clip grow faint mono pane-title">${title}</span>`}
      <${Hands} name=${name} agent=${agent} isOurs=${isOurs} />
      ${agent && html`<${ControlMenu} agent=${agent} />`}
      <${Button} kind="quiet" small icon=${isLarge ? "minus" : "fit"} label=${isLarge ? "Show all terminals" : "Show only this one"} onClick=${onLarge} />
      <${Button} kind="quiet" small icon="x" label=${`Hide the terminal of ${name}`} onClick=${onClose} />
    </header>
    <${Screen} agent=${name} room=${room} onTitle=${setTitle} />
  </section>`;
}

function Hands({ name, agent, isOurs }) {
  if (isOurs) return html`<${Button} small kind="primary" icon="keyboard" onClick=${releaseKeyboard}>Release keyboard<//>`;
  if (!agent?.connected) return null;
  return html`<${Button} small icon="keyboard" tip=${`Type into the terminal yourself. Messages to ${name} wait until you are done.`}
    onClick=${() => orSay(() => takeKeyboard(name))}>Take the keyboard<//>`;
}
