// A dialog to type into an agent's terminal.

import { html, render, useState } from "../lib/ui.js";
import { part, post } from "../lib/api.js";
import { orSay, say } from "../lib/toasts.js";
import { Button } from "../parts/button.js";
import { Dialog } from "../parts/dialog.js";

/** Shows it until something was typed or it was closed. */
export function askInput(agent) {
  const place = document.createElement("div");
  document.body.append(place);
  const close = () => {
    render(null, place);
    place.remove();
  };
  render(html`<${InputDialog} agent=${agent} onClose=${close} />`, place);
}

function InputDialog({ agent, onClose }) {
  const [text, setText] = useState("");
  const [ends, setEnds] = useState(true);
  const send = (event) => {
    event.preventDefault();
    orSay(async () => {
      await post(`agents/${part(agent.name)}/input`, { text: ends ? `${text}\n` : text });
      say(`Typed into the terminal of ${agent.name}.`, { tone: "success" });
      onClose();
    });
  };
  return html`<${Dialog} title=${`Type into ${agent.name}`} onClose=${onClose} width=${520}>
    <p class="muted">The text is typed into the terminal unchanged, even into an open dialog. To write to the agent, send it a
      message instead.</p>
    <form class="stack" style=${{ "--gap": "12px" }} onSubmit=${send}>
      <div class="field"><label for="input-text">Text</label>
        <textarea id="input-text" class="input mono" rows="4" autofocus spellcheck="false" value=${text}
          onInput=${(event) => setText(event.currentTarget.value)} /></div>
      <label class="check"><input type="checkbox" checked=${ends} onChange=${(event) => setEnds(event.currentTarget.checked)} />Press Enter at the end</label>
      <div class="line" style=${{ justifyContent: "flex-end" }}><${Button} onClick=${onClose}>Cancel<//>
        <${Button} kind="primary" type="submit" disabled=${!text && !ends}>Type<//></div>
    </form><//>`;
}
