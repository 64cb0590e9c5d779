// Who is in a channel: the menu that lets agents join and leave, and the dialog for a new one.

import { html, render, useState } from "../lib/ui.js";
import { get, part, post } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { useReading } from "../lib/reading.js";
import { go, link } from "../lib/router.js";
import { agents, isYou, readAgents } from "../lib/store.js";
import { orSay, say } from "../lib/toasts.js";
import { reveal } from "../lib/visible-text.js";
import { Button } from "../parts/button.js";
import { Dialog } from "../parts/dialog.js";
import { Menu } from "../parts/menu.js";
import { showName } from "./place.js";

const NAME = "#?[A-Za-z0-9][A-Za-z0-9_.\\-]{0,63}";
const MOST = 30; // agents in the menu; the command line knows all of them

/** The channels that agents are in, by name. */
export const joined = () => [...new Set([...agents.value.values()].flatMap((agent) => agent.channels))].sort();

/** `agent` null: whoever looks at this page. */
const change = (command, channel, agent) => orSay(async () => {
  await post(`channels/${part(channel.replace(/^#/, ""))}/${command}`, agent === null ? {} : { agent });
  readAgents();
  const who = agent === null ? "You have" : `${agent} has`;
  say(`${who} ${command === "join" ? "joined" : "left"} ${channel}.`, { tone: "success" });
});

export function Members({ channel }) {
  const all = [...agents.value.values()];
  const inside = all.filter((agent) => agent.channels.includes(channel));
  const isMember = inside.some((agent) => isYou(agent.name));
  const others = all.filter((agent) => !isYou(agent.name));
  const items = [
    { label: isMember ? "Leave" : "Join", icon: isMember ? "minus" : "plus", run: () => change(isMember ? "leave" : "join", channel, null) },
    ...others.filter((agent) => agent.channels.includes(channel))
      .map(({ name }) => ({ label: `Remove ${name}`, icon: "minus", run: () => change("leave", channel, name) })),
    ...others.filter((agent) => !agent.channels.includes(channel) && agent.connected)
      .map(({ name }) => ({ label: `Add ${name}`, icon: "plus", run: () => change("join", channel, name) })),
  ];
  const names = inside.map((agent) => showName(agent.name)).join(", ");
  return html`<${Menu} label=${`Members of ${channel}`} icon="users" items=${items.slice(0, MOST)} tip=${names || "Nobody is in it"}>
    <span class="tabular">${plural(inside.length, "member")}</span><//>`;
}

/** What the channel is for, if somebody has said so. */
export function TopicLine({ channel }) {
  const { value } = useReading(() => get("channels"), [channel]);
  const line = value?.channels.find((each) => each.name === channel)?.topicLine;
  return line ? html`<span class="faint clip topic-line" title=${line}>${reveal(line)}</span>` : null;
}

let place = null;

export function showNewChannel() {
  if (place !== null) return;
  place = document.createElement("div");
  document.body.append(place);
  render(html`<${NewChannel} onClose=${close} />`, place);
}

function close() {
  render(null, place);
  place.remove();
  place = null;
}

function NewChannel({ onClose }) {
  const [name, setName] = useState("");
  const join = (event) => {
    event.preventDefault();
    const channel = `#${name.trim().replace(/^#/, "")}`;
    onClose();
    change("join", channel, null);
    go(link("conversations", ["channel", channel]));
  };
  const footer = html`<${Button} onClick=${onClose}>Cancel<//><${Button} kind="primary" type="submit" form="channel">Join<//>`;
  return html`<${Dialog} title="Join a channel" onClose=${onClose} footer=${footer}>
    <form id="channel" class="field" onSubmit=${join}><label for="channel-name">Channel</label>
      <input id="channel-name" class="input" required pattern=${NAME} title="Letters, digits, dots, dashes and underscores" autofocus value=${name}
        placeholder="#dev" autocomplete="off" spellcheck="false" onInput=${(event) => setName(event.currentTarget.value)} />
      <span class="hint">The first to join makes it. Let agents join from its head.</span></form><//>`;
}
