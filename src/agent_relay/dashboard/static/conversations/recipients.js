// The field that says who gets a message: names as chips, with suggestions. A channel or everyone stands alone.

import { html, useId, useState } from "../lib/ui.js";
import { agents, isYou } from "../lib/store.js";
import { Avatar } from "../parts/avatar.js";
import { Icon } from "../parts/icon.js";
import { showName } from "./place.js";

const MOST = 7;
const isAlone = (target) => target === "*" || target.startsWith("#");

export function Recipients({ value, onChange }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [found, setFound] = useState([]); // as they were when a key was last pressed: nobody takes another's place in it by coming or going
  const id = useId();
  const suggest = (words, chosen) => {
    setFound(suggestions(words, chosen));
    setAt(0);
  };
  const add = (target) => {
    const next = isAlone(target) ? [target] : [...value.filter((each) => !isAlone(each) && each !== target), target];
    onChange(next);
    setText("");
    suggest("", next);
  };
  const keys = {
    ArrowDown: () => setAt((at + 1) % Math.max(1, found.length)),
    ArrowUp: () => setAt((at - 1 + found.length) % Math.max(1, found.length)),
    Enter: () => found[at] && add(found[at]),
    ",": () => found[at] && add(found[at]),
    Tab: () => text && found[at] && add(found[at]),
    Escape: () => setFound([]),
    Backspace() {
      onChange(value.slice(0, -1));
      suggest("", value.slice(0, -1));
    },
  };
  const onKeyDown = (event) => {
    const isIdle = (event.key === "Backspace" && text) || (event.key === "Tab" && !text) || (event.key === "Escape" && !found.length);
    if (!(event.key in keys) || isIdle) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  };
  const onInput = (event) => {
    setText(event.currentTarget.value);
    suggest(event.currentTarget.value, value);
  };
  return html`<div class="recipients">
    <label for=${id}>To</label>
    ${value.map((target) => html`<${Chip} key=${target} target=${target} onRemove=${() => onChange(value.filter((each) => each !== target))} />`)}
    <input id=${id} value=${text} placeholder=${value.length ? "" : "agents, #channel or everyone"} autocomplete="off" role="combobox"
      aria-expanded=${found.length > 0} aria-controls=${`${id}-list`} aria-activedescendant=${found[at] ? `${id}-${at}` : undefined}
      onFocus=${() => suggest(text, value)} onBlur=${() => setFound([])} onKeyDown=${onKeyDown} onInput=${onInput} />
    <ul class="suggestions" id=${`${id}-list`} role="listbox" aria-label="Suggestions" hidden=${!found.length}>
      ${found.map((target, index) => html`<${Suggestion} key=${target} id=${`${id}-${index}`} target=${target}
        isChosen=${index === at} onTake=${() => add(target)} />`)}
    </ul>
  </div>`;
}

function Chip({ target, onRemove }) {
  return html`<span class="chip">${showTarget(target)}
    <button type="button" aria-label=${`Remove ${showTarget(target)}`} onClick=${onRemove}><${Icon} name="x" size=${12} /></button></span>`;
}

function Suggestion({ id, target, isChosen, onTake }) {
  const take = (event) => {
    event.preventDefault(); // the field keeps the focus
    onTake();
  };
  const icon = target === "*" ? "users" : "hash";
  return html`<li id=${id} role="option" aria-selected=${isChosen} class="row" onPointerDown=${take}>
    ${isAlone(target) ? html`<span class="sign"><${Icon} name=${icon} size=${15} /></span>` : html`<${Avatar} name=${target} size=${20} />`}
    ${showTarget(target)}</li>`;
}

const showTarget = (target) => (target === "*" ? "Everyone" : showName(target));

function suggestions(text, chosen) {
  const word = text.trim().toLowerCase();
  const channels = new Set([...agents.value.values()].flatMap((agent) => agent.channels));
  const all = [...[...agents.value.keys()].filter((name) => !isYou(name)), ...channels, "*"];
  const fits = (target) => target.toLowerCase().includes(word) || (target === "*" && "everyone".startsWith(word));
  const found = all.filter((target) => !chosen.includes(target) && fits(target));
  const isNew = /^#[a-z0-9][\w.-]*$/i.test(text.trim()) && !channels.has(text.trim());
  return (isNew ? [...found, text.trim()] : found).sort((one, other) => starts(other, word) - starts(one, word)).slice(0, MOST);
}

const starts = (target, word) => Number(target.toLowerCase().startsWith(word));
