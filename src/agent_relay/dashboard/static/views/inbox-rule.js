// "Allow like this…": a rule made of an open request, with what it would have approved in the past days shown before it is added.

import { html, render, useEffect, useMemo, useState } from "../lib/ui.js";
import { part, post } from "../lib/api.js";
import { plural, showAgo, showMoment } from "../lib/format.js";
import { afterQuiet } from "../lib/frames.js";
import { say } from "../lib/toasts.js";
import { reveal } from "../lib/visible-text.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { Dialog } from "../parts/dialog.js";
import { Loading } from "../parts/empty.js";

const ASK_MS = 250;
const OUTCOMES = { approved: ["ok", "approved"], denied: ["danger", "denied"], timeout: ["warn", "not answered"] };

/** Whether a rule could approve such requests; what else speaks against one, the daemon says. */
export const mayHaveRule = ({ canAllow, isExact, riskLevel, command, filePath }) => canAllow && isExact && riskLevel !== "critical" && Boolean(command || filePath);

/** `onAdded` is called once the rule holds. */
export function askForRule(about, onAdded) {
  const place = document.createElement("div");
  document.body.append(place);
  const close = () => {
    render(null, place);
    place.remove();
  };
  render(html`<${RuleDialog} about=${about} onClose=${close} onAdded=${onAdded} />`, place);
}

function RuleDialog({ about, onClose, onAdded }) {
  const path = `agents/${part(about.agentName)}/permissions/${part(about.requestId)}/rule`;
  const [pattern, setPattern] = useState("");
  const { shown, problem, look } = usePreview(path);
  const [isAdding, setAdding] = useState(false);
  const [refusal, setRefusal] = useState("");
  const write = (text) => {
    setPattern(text);
    setRefusal("");
    look(text);
  };
  useEffect(() => { if (shown && !pattern) setPattern(shown.pattern); }, [shown]);
  const isChecked = shown !== null && shown.pattern === pattern && !shown.problem;
  const add = async (event) => {
    event.preventDefault();
    if (!isChecked || isAdding) return;
    setAdding(true);
    try {
      const added = await post(path, { pattern });
      onClose();
      say(`The rule is in ${added.path}. Remove it there.`, { tone: "success" });
      onAdded();
    } catch (error) {
      setRefusal(error.message);
      setAdding(false);
    }
  };
  const footer = html`<${Button} onClick=${onClose}>Cancel<//>
    <${Button} kind="primary" icon="shield" type="submit" form="rule" disabled=${!isChecked || isAdding}>Add the rule and approve<//>`;
  return html`<${Dialog} title="Allow like this" width=${620} onClose=${onClose} footer=${footer} class="rule-dialog">
    ${problem ? html`<p class="note warn" role="alert">${problem}</p>` : shown === null ? html`<${Loading} />` : html`
    <form id="rule" class="stack" style=${{ "--gap": "14px" }} onSubmit=${add}>
      <p class="muted">From now on requests of every agent to use <strong>${shown.tool}</strong> that match are approved without asking you.</p>
      <div class="field"><label for="rule-pattern">${shown.about === "command" ? "Command" : "File"}</label>
        <input id="rule-pattern" class="input mono" autofocus required autocomplete="off" spellcheck="false" value=${pattern} onInput=${(event) => write(event.currentTarget.value)} />
        <span class="line wrap">${[shown.exact, shown.wider].filter(Boolean).map((each, at) => html`<button type="button" key=${each} class="chip"
          aria-pressed=${pattern === each} onClick=${() => write(each)}>${at ? "" : "Exactly "}<code>${each}</code></button>`)}</span>
        <span class="hint">The whole ${shown.about} must match; <code>*</code> stands for anything.</span></div>
      ${refusal && html`<p class="note bad" role="alert">${refusal}</p>`}
      ${shown.pattern !== pattern ? html`<${Loading} />` : html`<${Preview} shown=${shown} />`}
    </form>`}<//>`;
}

/** { shown: the newest preview, problem: why there can be no rule at all, look(pattern) } */
function usePreview(path) {
  const [state, setState] = useState({ shown: null, problem: "" });
  const ask = useMemo(() => {
    let turn = 0;
    return async (pattern) => {
      const mine = ++turn;
      try {
        const shown = await post(`${path}/preview`, pattern ? { pattern } : {});
        if (mine === turn) setState({ shown, problem: "" });
      } catch (error) {
        if (mine === turn) setState((now) => ({ ...now, problem: error.message }));
      }
    };
  }, [path]);
  const look = useMemo(() => afterQuiet(ASK_MS, (pattern) => pattern && ask(pattern)), [ask]);
  useEffect(() => { ask(""); }, [ask]);
  return { ...state, look };
}

function Preview({ shown }) {
  if (shown.problem) return html`<p class="note bad" role="alert" data-problem>${shown.problem}</p>`;
  const { looked, count, denied, found } = shown;
  return html`<section class="rule-past" aria-label="In the last seven days" data-count=${count}>
    <h3>In the last seven days</h3>
    <p class="muted" role="status">${count ? `It would have approved ${count} of ${plural(looked, "request")} that ${looked === 1 ? "was" : "were"} asked.` : `It would have approved none of ${plural(looked, "request")}.`}
      ${denied > 0 && html` <strong class="warn-text">${plural(denied, "of them was", "of them were")} denied.</strong>`}</p>
    ${count > 0 && html`<ul tabindex="0" aria-label="Requests it would have approved">${found.map((each, at) => html`<li key=${`${each.at} ${at}`} class="line">
      <span class="mono clip grow" title=${each.subject}>${reveal(each.subject)}</span><span class="faint">${each.agentName}</span>
      ${OUTCOMES[each.outcome] && html`<${Badge} tone=${OUTCOMES[each.outcome][0]}>${OUTCOMES[each.outcome][1]}<//>`}
      <time class="faint tabular" title=${showMoment(each.at)}>${showAgo(each.at)}</time></li>`)}</ul>`}
  </section>`;
}
