// Control, where agents are shown: starting one beside their list, commands in the details of one.

import { html, loadStyle } from "../lib/ui.js";
import { addShortcut } from "../lib/keys.js";
import { link } from "../lib/router.js";
import { addTo } from "../lib/slots.js";
import { Button } from "../parts/button.js";
import { controlsOf } from "./control-actions.js";
import { showSpawn } from "./control-spawn.js";

loadStyle("css/control.css");
addTo("agents-heading", () => html`<${Button} kind="quiet" small icon="plus" label="Start an agent" keys="s" onClick=${() => showSpawn()} />`);
addTo("agent-actions", AgentActions, { order: 10 });
addShortcut("s", "Start an agent", () => showSpawn());

function AgentActions({ agent }) {
  const hasTerminal = Boolean(agent.meta?.backend);
  const terminal = link("terminals", [], { agents: agent.name, select: `agent:${agent.name}` });
  return html`${hasTerminal && html`<${Button} small icon="terminal" href=${terminal}>Terminal<//>`}
    ${controlsOf(agent).map(({ id, label, icon, danger, run }) => html`<${Button} key=${id} small kind=${danger ? "danger" : "plain"} icon=${icon}
      onClick=${run}>${label}<//>`)}`;
}
