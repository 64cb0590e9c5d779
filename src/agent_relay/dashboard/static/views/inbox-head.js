// The head of a card: who asks, since when, and the way to its terminal.

import { html } from "../lib/ui.js";
import { showAgo, showMoment } from "../lib/format.js";
import { link, select } from "../lib/router.js";
import { agents } from "../lib/store.js";
import { Avatar } from "../parts/avatar.js";
import { Button } from "../parts/button.js";
import { Tip } from "../parts/tooltip.js";
import { LaterMenu } from "./inbox-later.js";

/** `onLater` puts it off until then. */
export function RequestHead({ about, onLater, children }) {
  const agent = agents.value.get(about.agentName);
  return html`<header><${Avatar} name=${about.agentName} size=${26} />
    <button type="button" class="clip asker" onClick=${() => select("agent", about.agentName)}>${about.agentName}</button>${children}
    <span class="grow" />
    <${Tip} text=${showMoment(about.requestedAt)}>
      <time class="faint" tabindex="0" datetime=${new Date(about.requestedAt).toISOString()}>${showAgo(about.requestedAt)}</time><//>
    ${agent?.meta?.backend && html`<${Button} kind="quiet" small icon="terminal" label="Show its terminal"
      href=${link("terminals", [], { agents: about.agentName })} />`}
    <${LaterMenu} bare onLater=${onLater} />
  </header>`;
}
