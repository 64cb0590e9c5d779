// Says how this browser gets in, while it is not.

import { html, useState } from "../lib/ui.js";
import { keyWanted } from "../lib/key.js";
import { Button } from "../parts/button.js";
import { Dialog } from "../parts/dialog.js";

export function KeyDialog() {
  return keyWanted.value && html`<${Ask} ...${keyWanted.value} />`;
}

function Ask({ problem, enter }) {
  const [code, setCode] = useState("");
  const send = (event) => {
    event.preventDefault();
    if (code.trim()) enter(code.trim());
  };
  return html`<${Dialog} title="This browser is not signed in" canClose=${false} onClose=${() => {}}>
    <form class="stack" style=${{ "--gap": "16px" }} onSubmit=${send}>
      <p>Run <code>agent-relay open</code> in a terminal, in the project's folder. It opens this page with a code that works once, for a
        minute.</p>
      <p class="muted">You can also enter such a code here, or the relay's token.</p>
      <div class="field"><label for="code">Code or token</label>
        <input class="input mono" id="code" type="password" autocomplete="off" autofocus value=${code}
          onInput=${(event) => setCode(event.currentTarget.value)} aria-invalid=${Boolean(problem)}
          aria-describedby=${problem ? "code-wrong" : undefined} />
        ${problem && html`<p id="code-wrong" class="hint wrong" role="alert">${problem}</p>`}</div>
      <div class="line" style=${{ justifyContent: "flex-end" }}><${Button} kind="primary" type="submit" disabled=${!code.trim()}>Continue<//></div>
    </form>
  <//>`;
}
