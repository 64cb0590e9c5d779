// Ctrl-K or ⌘K: whatever the page can show or do, found by a few letters of its name.

import { classes, html, signal, useEffect, useId, useState } from "../lib/ui.js";
import { addShortcut } from "../lib/keys.js";
import { go, link } from "../lib/router.js";
import { markAllSeen } from "../lib/seen.js";
import { addTo } from "../lib/slots.js";
import { agents, isYou } from "../lib/store.js";
import { toggle } from "../lib/theme.js";
import { Avatar } from "../parts/avatar.js";
import { Button } from "../parts/button.js";
import { Dialog } from "../parts/dialog.js";
import { Icon } from "../parts/icon.js";
import { controlsOf } from "../views/control-actions.js";
import { showSpawn } from "../views/control-spawn.js";
import { views } from "../views/index.js";
import { known } from "../conversations/conversation-list.js";
import { joined } from "../conversations/members.js";
import { HINT } from "../conversations/search.js";
import { showThread } from "../conversations/threads.js";
import { isMac, showHelp } from "./help.js";

const MOST = 12;
const isOpen = signal(false);

addShortcut("Mod+k", "Go to or do anything", () => { isOpen.value = !isOpen.value; }, { whileTyping: true });

/** [{ label, kind, icon or agent, run }], in the order in which equals are shown. */
function entries() {
  const others = [...agents.value.values()].filter((agent) => !isYou(agent.name));
  const threads = known().filter((each) => each.type === "thread");
  return [
    ...views.map(({ id, title, icon }) => ({ label: title, kind: "View", icon, run: () => go(link(id)) })),
    ...others.map(({ name }) => ({ label: name, kind: "Agent", agent: name, run: () => go(link("conversations", ["agent", name], { select: `agent:${name}` })) })),
    ...joined().map((name) => ({ label: name, kind: "Channel", icon: "hash", run: () => go(link("conversations", ["channel", name])) })),
    ...threads.map(({ key }) => ({ label: showThread(key), kind: "Thread", icon: "thread", run: () => go(link("conversations", ["thread", key])) })),
    { label: "Start an agent", kind: "Action", icon: "plus", run: () => showSpawn() },
    { label: "Mark all as read", kind: "Action", icon: "checks", run: () => markAllSeen() },
    { label: "Toggle light and dark", kind: "Action", icon: "moon", run: toggle },
    { label: "Keyboard shortcuts", kind: "Action", icon: "keyboard", run: showHelp },
    ...others.flatMap((agent) => controlsOf(agent).map(({ label, icon, run }) => ({ label: about(label, agent.name), kind: "Action", icon, run }))),
  ];
}

/** "Pause Bob", "Type into Bob". */
const about = (label, name) => `${label.replace(/( it)?…?$/, "")} ${name}`;

/** 0 begins with it, 1 a word begins with it, 2 contains it; Infinity where a word is missing. */
function rank(label, words) {
  const text = label.toLowerCase();
  if (!words.every((word) => text.includes(word))) return Infinity;
  if (text.startsWith(words.join(" "))) return 0;
  return words.every((word) => new RegExp(`(?:^|[^\\p{L}\\p{N}])${RegExp.escape?.(word) ?? word.replace(/[^\p{L}\p{N}]/gu, "\\$&")}`, "u").test(text)) ? 1 : 2;
}

function find(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = entries().map((entry) => ({ ...entry, rank: rank(entry.label, words) })).filter((entry) => entry.rank < Infinity);
  const best = found.sort((one, other) => one.rank - other.rank).slice(0, MOST);
  const search = { label: `Search messages for “${text.trim()}”`, kind: "Search", icon: "search", run: () => go(link("conversations", ["all"], { search: text.trim() })) };
  return text.trim() ? [...best, search] : best;
}

function Palette() {
  return isOpen.value && html`<${Open} onClose=${() => { isOpen.value = false; }} />`;
}

const Opener = () => html`<${Button} kind="quiet" icon="search" label="Go to or do anything" keys=${isMac ? "⌘K" : "Ctrl K"} class="wide"
  onClick=${() => { isOpen.value = true; }} />`;

addTo("front", Palette);
addTo("topbar-end", Opener);

function Open({ onClose }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const found = find(text);
  useEffect(() => { document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" }); }, [at]);
  const take = (entry) => {
    onClose();
    setTimeout(entry.run); // the dialog gives the focus back first
  };
  const onKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setAt((at + step + found.length) % Math.max(1, found.length));
    else if (event.key === "Enter" && !event.isComposing && found[at]) take(found[at]);
    else return;
    event.preventDefault();
  };
  const write = (event) => {
    setText(event.currentTarget.value);
    setAt(0);
  };
  return html`<${Dialog} title="Go to or do anything" width=${560} class="palette" onClose=${onClose}>
    <input class="input" autofocus role="combobox" aria-label="Find" aria-expanded="true" aria-controls=${`${id}-list`} aria-activedescendant=${found[at] ? `${id}-${at}` : undefined}
      placeholder="An agent, a conversation, a view, an action, or words of a message" title=${HINT} autocomplete="off" spellcheck="false" value=${text} onInput=${write} onKeyDown=${onKeyDown} />
    <ul role="listbox" id=${`${id}-list`} aria-label="Found">${found.map((entry, index) => html`<li key=${`${entry.kind} ${entry.label}`} id=${`${id}-${index}`} role="option"
      aria-selected=${index === at} class=${classes("row", index === at && "here")} onPointerDown=${(event) => event.preventDefault()} onClick=${() => take(entry)}>
      ${entry.agent ? html`<${Avatar} name=${entry.agent} size=${20} />` : html`<span class="sign"><${Icon} name=${entry.icon} size=${15} /></span>`}
      <span class="grow clip">${entry.label}</span><span class="muted">${entry.kind}</span></li>`)}</ul><//>`;
}
