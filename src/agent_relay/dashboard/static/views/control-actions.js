// Commands to agents that the relay runs: what can be done to one now, and how it is done.

import { part, post } from "../lib/api.js";
import { readAgents } from "../lib/store.js";
import { orSay, say } from "../lib/toasts.js";
import { confirm } from "../parts/dialog.js";
import { askInput } from "./control-input.js";

/** [{ id, label, icon, run, danger }]; nothing for one that takes no commands. */
export function controlsOf(agent) {
  if (!agent.connected || !takesCommands(agent)) return [];
  return [
    agent.paused
      ? { id: "resume", label: "Resume", icon: "play", run: () => tell(agent, "resume", "receives messages again") }
      : { id: "pause", label: "Pause", icon: "pause", run: () => tell(agent, "pause", "is paused; its messages wait") },
    { id: "input", label: "Type into it…", icon: "keyboard", run: () => askInput(agent) },
    { id: "interrupt", label: "Interrupt", icon: "bolt", run: () => interrupt(agent) },
    { id: "stop", label: "Stop…", icon: "stop", danger: true, run: () => stop(agent) },
  ];
}

/** One that reports the way messages go in is run by a wrapper, and that takes commands. */
export const takesCommands = (agent) => agent.door !== null;

const tell = (agent, command, outcome) => orSay(async () => {
  await post(`agents/${part(agent.name)}/${command}`);
  say(`${agent.name} ${outcome}.`, { tone: "success" });
  readAgents();
});

async function interrupt(agent) {
  const text = `${agent.name} stops what it is doing and waits for new input. Unfinished work may be half done.`;
  if (await confirm({ title: `Interrupt ${agent.name}?`, text, action: "Interrupt" })) tell(agent, "interrupt", "was interrupted");
}

async function stop(agent) {
  const text = `Its program is stopped, whatever it is doing. Messages to ${agent.name} wait until it is started again.`;
  if (await confirm({ title: `Stop ${agent.name}?`, text, action: "Stop", danger: true })) tell(agent, "stop", "is being stopped");
}
