// An empty page: what is installed here and can be started with a click, the commands for a terminal, and the demonstration.

import { html } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { useReading } from "../lib/reading.js";
import { status } from "../lib/store.js";
import { Button } from "../parts/button.js";
import { CliIcon } from "../parts/icon.js";
import { copyText } from "./copying.js";

const NAMES = ["Alice", "Bob"];

export function FirstSteps() {
  const { value } = useReading(() => get("clis"), []);
  const clis = value?.clis ?? [];
  const installed = clis.filter((cli) => cli.isInstalled);
  const others = clis.filter((cli) => !cli.isInstalled && cli.install);
  const [one = "claude", other = one] = installed.map(({ name }) => name);
  return html`<section class="first-steps" aria-label="First steps">
    <h2>Start your first agents</h2>
    <p class="muted">Agents that run in ${status.value?.project ? html`<span class="mono">${status.value.project}</span>` : "this project"} find each other by name and talk here.</p>
    ${installed.length > 0 && html`<div class="line wrap">${installed.map(({ name }) => html`<${Button} key=${name} kind="primary" onClick=${() => start(name)}>
      <${CliIcon} cli=${name} size=${15} />Start ${name} here<//>`)}</div>`}
    ${value !== null && !installed.length && html`<p class="note warn" role="status">None of the programs that the relay may start is installed where it runs.</p>`}
    <h3>Or in two terminals of yours</h3>
    ${[one, other].map((cli, at) => html`<${Command} key=${at} text=${`agent-relay -n ${NAMES[at]} ${cli}`} />`)}
    <h3>Or look at it first</h3>
    <p class="muted">Half a minute, without any account:</p><${Command} text="agent-relay demo" />
    ${others.length > 0 && html`<details><summary>Not installed here: ${others.map(({ name }) => name).join(", ")}</summary>
      ${others.map(({ name, install }) => html`<${Command} key=${name} text=${install} />`)}</details>`}
  </section>`;
}

const Command = ({ text }) => html`<p class="command-line"><code>${text}</code><${Button} kind="quiet" small icon="copy" label=${`Copy ${text}`} onClick=${() => copyText(text)} /></p>`;

/** The dialog comes with what is loaded after the first paint. */
const start = async (cli) => (await import("../views/control-spawn.js")).showSpawn({ cli });
