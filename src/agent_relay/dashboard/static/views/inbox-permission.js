// A permission that an agent asks for: what it wants to do, how risky that is, and the decision.

import { classes, html, useLayoutEffect, useRef, useState } from "../lib/ui.js";
import { part, post } from "../lib/api.js";
import { decide } from "../lib/decisions.js";
import { sayTooSoon } from "../lib/settling.js";
import { reveal } from "../lib/visible-text.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { confirm } from "../parts/dialog.js";
import { Undo } from "../parts/undo.js";
import { RequestHead } from "./inbox-head.js";
import { askForRule, mayHaveRule } from "./inbox-rule.js";

const RISKS = { low: ["ok", "Low risk"], medium: ["info", "Medium risk"], high: ["warn", "High risk"], critical: ["solid", "Critical"] };

const SHORT_LINES = 12; // a longer dialog is shown when it is asked for

/** `pending` is what was decided and can still be taken back; `isSettled`: it has been there long enough to be decided on. */
export function PermissionCard({ about, isCurrent, isSettled, pending, onChoose, onLater }) {
  const [isAsking, setAsking] = useState(false);
  const [reason, setReason] = useState("");
  const card = useRef(null);
  const [tone, word] = RISKS[about.riskLevel];
  const isCritical = about.riskLevel === "critical";

  const press = async (command, option = null) => {
    if (!isSettled) {
      sayTooSoon();
      return;
    }
    if (command === "approve" && isCritical && !(await isSure(about, option))) return;
    give(command, option);
  };
  const give = (command, option = null) => {
    decide({
      id: about.requestId, about, doing: option ? `Choosing “${option}”` : command === "approve" ? "Approving" : "Denying",
      send: async () => {
        const said = { ...(reason && { reason }), ...(option && { option }) };
        await post(`agents/${part(about.agentName)}/permissions/${part(about.requestId)}/${command}`, said);
        return command === "approve" ? `Approved for ${about.agentName}.` : `Denied for ${about.agentName}.`;
      },
    });
  };
  useLayoutEffect(() => { if (isAsking) card.current.querySelector("textarea").focus(); }, [isAsking]); // at once: the next letters are the reason

  return html`<article class=${classes("card request", about.riskLevel, isCurrent && "current")} tabindex="-1" data-request=${about.requestId}
      ref=${card} onFocusIn=${onChoose} onPointerDown=${onChoose} aria-label=${`${about.agentName} asks to use ${reveal(about.tool)}`}>
    <${RequestHead} about=${about} onLater=${onLater}><span class="muted">wants to use</span><strong class="clip">${reveal(about.tool) || "a tool"}</strong>
      <${Badge} tone=${tone} icon=${isCritical ? "alert" : "shield"}>${word}<//><//>
    <div class="body stack" style=${{ "--gap": "12px" }}>
      ${about.command && html`<pre class="command"><code>${reveal(about.command)}</code></pre>`}
      ${about.filePath && html`<dl class="facts"><dt>File</dt><dd class="mono">${reveal(about.filePath)}</dd></dl>`}
      ${about.description && about.description !== about.command && html`<${Dialogue} text=${reveal(about.description)} />`}
      ${isAsking && html`<div class="field"><label for=${`why-${about.requestId}`}>Reason (the agent sees it)</label>
        <textarea id=${`why-${about.requestId}`} class="input" rows="2" value=${reason} disabled=${pending !== null} placeholder="Use the staging copy instead."
          onInput=${(event) => setReason(event.currentTarget.value)} /></div>`}
      ${pending ? html`<${Undo} entry=${pending} />` : html`<div class="line wrap decision">
        ${about.canAllow && html`<${Button} kind="primary" class=${isCritical && "warn"} icon=${isCritical ? "alert" : "check"} data-press="approve"
          aria-disabled=${!isSettled} onClick=${() => press("approve")}>${isCritical ? "Approve…" : "Approve"}<//>`}
        <${Button} icon="x" data-press="deny" aria-disabled=${!isSettled} onClick=${() => press("deny")}>${reason ? "Deny with reason" : "Deny"}<//>
        ${about.widerOptions.map((option) => html`<${Button} key=${option} icon="checks" class="wider" data-press="wider" aria-disabled=${!isSettled}
          onClick=${() => press("approve", option)}><span class="clip" dir="auto">${reveal(option)}</span><//>`)}
        ${mayHaveRule(about) && html`<${Button} kind="quiet" icon="shield" data-press="rule" onClick=${() => askForRule(about, () => give("approve"))}>Allow like this…<//>`}
        ${!isAsking && html`<${Button} kind="quiet" icon="bubble" data-press="reason" onClick=${() => setAsking(true)}>Add a reason<//>`}
        ${!about.canAllow && html`<span class="faint">This can only be approved in its own terminal.</span>`}
      </div>`}
    </div>
  </article>`;
}

const isSure = ({ agentName, command, description }, option) => confirm({
  title: `Let ${agentName} do this?`, text: [reveal(command ?? description), option && `Its dialog: “${reveal(option)}”`].filter(Boolean).join("\n"),
  action: "Approve", danger: true,
});

/** The text of the CLI's own dialog, as it stands on the screen. */
function Dialogue({ text }) {
  return html`<details class="dialogue" open=${text.split("\n").length <= SHORT_LINES}><summary>Its terminal shows</summary><pre>${text}</pre></details>`;
}
