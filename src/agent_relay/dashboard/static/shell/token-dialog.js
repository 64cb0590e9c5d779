// Asks for the daemon's token, where one is set.

import { html, useState } from "../lib/ui.js";
import { tokenWanted } from "../lib/api.js";
import { Button } from "../parts/button.js";
import { Dialog } from "../parts/dialog.js";

export function TokenDialog() {
  return tokenWanted.value && html`<${Ask} ...${tokenWanted.value} />`;
}

function Ask({ wrong, resolve }) {
  const [token, setToken] = useState("");
  const send = (event) => {
    event.preventDefault();
    if (token.trim()) resolve(token.trim());
  };
  return html`<${Dialog} title="This daemon asks for a token" canClose=${false} onClose=${() => {}}>
    <form class="stack" style=${{ "--gap": "16px" }} onSubmit=${send}>
      <p class="muted">It is the value of <code>AGENT_RELAY_API_TOKEN</code> in the daemon's environment. This tab keeps it until it is
        closed.</p>
      <div class="field"><label for="token">Token</label>
        <input class="input mono" id="token" type="password" autocomplete="off" autofocus value=${token}
          onInput=${(event) => setToken(event.currentTarget.value)} aria-invalid=${wrong}
          aria-describedby=${wrong ? "token-wrong" : undefined} />
        ${wrong && html`<p id="token-wrong" class="hint wrong" role="alert">The daemon did not take that token.</p>`}</div>
      <div class="line" style=${{ justifyContent: "flex-end" }}><${Button} kind="primary" type="submit" disabled=${!token.trim()}>Continue<//></div>
    </form>
  <//>`;
}
