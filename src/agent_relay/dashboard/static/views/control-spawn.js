// Starting an agent: which CLI, its name, its first task, and where it works.

import { classes, html, render, useEffect, useState } from "../lib/ui.js";
import { get, post } from "../lib/api.js";
import { go, link } from "../lib/router.js";
import { agents, readAgents } from "../lib/store.js";
import { say } from "../lib/toasts.js";
import { Button } from "../parts/button.js";
import { Dialog } from "../parts/dialog.js";
import { CliIcon } from "../parts/icon.js";

const NAMES = ["Alice", "Bob", "Carol", "Dave", "Erin", "Frank", "Grace", "Heidi", "Ivan", "Judy"];
const NAME = "[A-Za-z0-9][A-Za-z0-9_.\\-]{0,63}";

let place = null;

/** `cli`: the one to begin with. */
export function showSpawn({ cli = null } = {}) {
  if (place !== null) return;
  place = document.createElement("div");
  document.body.append(place);
  render(html`<${SpawnDialog} cli=${cli} onClose=${close} />`, place);
}

function close() {
  render(null, place);
  place.remove();
  place = null;
}

const freeName = () => NAMES.find((name) => !agents.value.has(name)) ?? "";

/** The hosts of the cluster that take part now; none where there is no cluster. */
function useHosts() {
  const [hosts, setHosts] = useState([]);
  useEffect(() => {
    get("hosts").then((found) => setHosts(found.hosts.filter(({ role, isExcluded }) => role !== "lost" && !isExcluded)), () => {});
  }, []);
  return hosts;
}

/** The programs that may be started, those that are installed first; null until they were read. */
function useClis() {
  const [clis, setClis] = useState(null);
  useEffect(() => { get("clis").then((found) => setClis(found.clis), () => setClis([])); }, []);
  return clis;
}

function SpawnDialog({ cli: first, onClose }) {
  const clis = useClis();
  const hosts = useHosts();
  const [chosen, setCli] = useState(first);
  const cli = chosen ?? clis?.find((each) => each.isInstalled)?.name ?? "claude";
  const about = clis?.find(({ name }) => name === cli) ?? null;
  const isMissing = about !== null && !about.isInstalled && hosts.length < 2; // another host may have it
  const [other, setOther] = useState("");
  const [fields, setFields] = useState({ agent: freeName(), task: "", cwd: "", host: "", model: "", mode: "" });
  const [problem, setProblem] = useState(null);
  const [isStarting, setStarting] = useState(false);
  const set = (name) => (event) => setFields({ ...fields, [name]: event.currentTarget.value });

  const start = async (event) => {
    event.preventDefault();
    setStarting(true);
    setProblem(null);
    const { agent, task, cwd, host } = fields;
    const model = about?.takesModel ? fields.model.trim() : "";
    const permissionMode = about?.permissionModes.includes(fields.mode) ? fields.mode : "";
    try {
      const { agentName } = await post("sessions", { agent: agent.trim(), cli: cli === "other" ? other.trim() : cli, ...(task && { task }), ...(cwd && { cwd }), ...(host && { host }),
        ...(model && { model }), ...(permissionMode && { permissionMode }) });
      readAgents();
      onClose();
      say(`${agentName} is starting.`, { tone: "success", action: { label: "Show its terminal", run: () => go(link("terminals", [], { agents: agentName })) } });
    } catch (error) {
      setProblem(error);
      setStarting(false);
    }
  };

  const footer = html`<${Button} onClick=${onClose}>Cancel<//>
    <${Button} kind="primary" type="submit" form="spawn" disabled=${isStarting || isMissing || clis === null}>${isStarting ? "Starting…" : "Start agent"}<//>`;
  return html`<${Dialog} title="Start an agent" onClose=${onClose} footer=${footer} width=${540}>
    <form id="spawn" class="stack" style=${{ "--gap": "16px" }} onSubmit=${start}>
      <fieldset class="field cli-choice"><legend class="label">CLI</legend><div class="line wrap">
        ${[...(clis ?? []), { name: "other", isInstalled: true }].map(({ name, isInstalled }) => html`<label key=${name} class=${classes("cli-option", !isInstalled && "missing")}>
          <input type="radio" name="cli" class="sr-only" value=${name} checked=${cli === name} onChange=${() => setCli(name)} /><span><${CliIcon} cli=${name} size=${14} />${name}</span></label>`)}</div></fieldset>
      ${isMissing && html`<p class="note warn" role="status" data-missing>${cli} is not installed where the relay runs.
        ${about.install && html` Install it with <code>${about.install}</code>, then open this again.`}</p>`}
      ${cli === "other" && html`<div class="field"><label for="spawn-other">Program</label>
        <input id="spawn-other" class="input mono" required value=${other} placeholder="aider" autocomplete="off" spellcheck="false"
          onInput=${(event) => setOther(event.currentTarget.value)} />
        <span class="hint">A program listed in the setting spawn_allow.</span></div>`}
      <div class="field"><label for="spawn-name">Name</label>
        <input id="spawn-name" class="input" required pattern=${NAME} title="Letters, digits, dots, dashes and underscores" autofocus
          value=${fields.agent} onInput=${set("agent")} autocomplete="off" spellcheck="false" /></div>
      ${(about?.takesModel || about?.permissionModes.length > 0) && html`<div class="line spawn-care">
        ${about.takesModel && html`<div class="field grow"><label for="spawn-model">Model <span class="faint">(optional)</span></label>
          <input id="spawn-model" class="input mono" value=${fields.model} onInput=${set("model")} placeholder="its own setting" autocomplete="off" spellcheck="false" /></div>`}
        ${about.permissionModes.length > 0 && html`<div class="field grow"><label for="spawn-mode">Permission mode</label>
          <select id="spawn-mode" class="input" value=${fields.mode} onChange=${set("mode")}><option value="">its own setting</option>
            ${about.permissionModes.map((mode) => html`<option key=${mode} value=${mode}>${mode}</option>`)}</select></div>`}</div>`}
      <div class="field"><label for="spawn-task">Task <span class="faint">(optional)</span></label>
        <textarea id="spawn-task" class="input" rows="4" value=${fields.task} onInput=${set("task")} placeholder="Its first message: what it should do." /></div>
      <div class="field"><label for="spawn-cwd">Directory <span class="faint">(optional)</span></label>
        <input id="spawn-cwd" class="input mono" value=${fields.cwd} onInput=${set("cwd")} placeholder="the project" autocomplete="off" spellcheck="false" /></div>
      ${hosts.length > 1 && html`<div class="field"><label for="spawn-host">Host</label>
        <select id="spawn-host" class="input" value=${fields.host} onChange=${set("host")}>
          <option value="">the least loaded that allows it</option>
          ${hosts.map(({ host }) => html`<option key=${host} value=${host}>${host}</option>`)}</select></div>`}
      ${problem && html`<p class="note bad" role="alert">${problem.message}</p>`}
    </form><//>`;
}
