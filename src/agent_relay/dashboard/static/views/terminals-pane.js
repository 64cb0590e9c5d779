// A terminal with its frame: whose it is, what that agent does, and the keyboard.

import { classes, html, useRef, useState } from "../lib/ui.js";
import { select } from "../lib/router.js";
import { isPhone } from "../lib/screen.js";
import { orSay } from "../lib/toasts.js";
import { Avatar } from "../parts/avatar.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { dotOf, stateOf } from "../shell/agent-list.js";
import { ControlMenu } from "./control-menu.js";
import { keyboardOf, releaseKeyboard, takeKeyboard } from "./terminals-keyboard.js";
import { KeyBar } from "./terminals-keybar.js";
import { isRecording, startRecording, stopRecording } from "./terminals-recording.js";
import { Screen } from "./terminals-screen.js";
import { TerminalSearch } from "./terminals-search.js";
import { beginAnew } from "./terminals-stream.js";

const words = { starting: "Starting", idle: "Idle", working: "Working", waiting: "Waiting for you", offline: "Offline" };
const tones = { waiting: "warn", working: "info", starting: "info", idle: "ok", offline: "neutral" };

export function Pane({ agent, name, room, smallest, isLarge, onLarge, onClose }) {
  const [title, setTitle] = useState("");
  const [isSearching, setSearching] = useState(false);
  const terminal = useRef(null);
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
      <${Button} kind="quiet" small icon="search" label=${`Search in the terminal of ${name}`} aria-pressed=${isSearching} onClick=${() => setSearching(!isSearching)} />
      <${Button} kind="quiet" small class="record" icon=${isRecording(name) ? "stop" : "record"} label=${isRecording(name) ? "Stop and save the recording" : "Record as .cast"} aria-pressed=${isRecording(name)} onClick=${() => record(name)} />
      ${agent && html`<${ControlMenu} agent=${agent} />`}
      <${Button} kind="quiet" small icon=${isLarge ? "minus" : "fit"} label=${isLarge ? "Show all terminals" : "Show only this one"} onClick=${onLarge} />
      <${Button} kind="quiet" small icon="x" label=${`Hide the terminal of ${name}`} onClick=${onClose} />
    </header>
    ${isSearching && html`<${TerminalSearch} terminal=${terminal} name=${name} onClose=${() => setSearching(false)} />`}
    <${Screen} agent=${name} room=${room} smallest=${smallest} hasPast handle=${terminal} onTitle=${setTitle} />
    ${isOurs && isPhone.value && html`<${KeyBar} />`}
  </section>`;
}

/** What is shown now comes first: the stream is begun anew. */
function record(name) {
  if (isRecording(name)) {
    stopRecording(name);
    return;
  }
  startRecording(name);
  beginAnew();
}

function Hands({ name, agent, isOurs }) {
  if (isOurs) return html`<${Button} small kind="primary" icon="keyboard" onClick=${releaseKeyboard}>Release keyboard<//>`;
  if (!agent?.connected) return null;
  return html`<${Button} small icon="keyboard" tip=${`Type into the terminal yourself. Messages to ${name} wait until you are done.`}
    onClick=${() => orSay(() => takeKeyboard(name))}>Take the keyboard<//>`;
}
