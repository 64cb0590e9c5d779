// Asking agents to vote: what about, whom, by which rule, and until when.

import { html, render, useState } from "../lib/ui.js";
import { post } from "../lib/api.js";
import { agents } from "../lib/store.js";
import { say } from "../lib/toasts.js";
import { joined } from "../conversations/members.js";
import { Button } from "../parts/button.js";
import { Dialog } from "../parts/dialog.js";

const MINUTE_MS = 60_000;
const DEADLINES = [[5, "5 minutes"], [30, "30 minutes"], [240, "4 hours"], [1_440, "a day"], [10_080, "a week"]];
const RULES = [["majority", "more than half"], ["unanimous", "all"], ["quorum", "so many"]];

let place = null;

/** `onDone`: once it is asked. */
export function showPropose(onDone) {
  if (place !== null) return;
  place = document.createElement("div");
  document.body.append(place);
  render(html`<${ProposeDialog} onClose=${close} onDone=${onDone} />`, place);
}

function close() {
  render(null, place);
  place.remove();
  place = null;
}

const readNames = (text) => text.split(",").map((name) => name.trim()).filter(Boolean);

function ProposeDialog({ onClose, onDone }) {
  const [fields, setFields] = useState({ title: "", participants: "", rule: "majority", quorum: "", minutes: "30", body: "" });
  const [problem, setProblem] = useState(null);
  const [isAsking, setAsking] = useState(false);
  const set = (name) => (event) => setFields({ ...fields, [name]: event.currentTarget.value });

  const ask = async (event) => {
    event.preventDefault();
    setAsking(true);
    setProblem(null);
    const { title, participants, rule, quorum, minutes, body } = fields;
    try {
      await post("proposals", { title: title.trim(), participants: readNames(participants), rule, timeout_ms: Number(minutes) * MINUTE_MS,
        ...(rule === "quorum" && { quorum: quorum.trim() }), ...(body.trim() && { body }) });
      onClose();
      onDone();
      say("They are asked.", { tone: "success" });
    } catch (error) {
      setProblem(error);
      setAsking(false);
    }
  };

  const footer = html`<${Button} onClick=${onClose}>Cancel<//>
    <${Button} kind="primary" type="submit" form="propose" disabled=${isAsking}>${isAsking ? "Asking…" : "Ask them"}<//>`;
  return html`<${Dialog} title="Ask agents to vote" onClose=${onClose} footer=${footer} width=${540}>
    <form id="propose" class="stack" style=${{ "--gap": "16px" }} onSubmit=${ask}>
      <div class="field"><label for="propose-title">What is to be decided</label>
        <input id="propose-title" class="input" required maxlength="200" autofocus value=${fields.title} onInput=${set("title")} placeholder="Use SQLite for the cache" autocomplete="off" /></div>
      <div class="field"><label for="propose-who">Who votes</label>
        <input id="propose-who" class="input" required list="propose-names" value=${fields.participants} onInput=${set("participants")} placeholder="Bob, Carol or #dev" autocomplete="off" spellcheck="false" />
        <datalist id="propose-names">${[...joined(), ...agents.value.keys()].map((name) => html`<option key=${name} value=${name} />`)}</datalist>
        <span class="hint">Names with commas, or a channel for its members.</span></div>
      <div class="line propose-rule">
        <div class="field grow"><label for="propose-rule">Approved by</label>
          <select id="propose-rule" class="input" value=${fields.rule} onChange=${set("rule")}>
            ${RULES.map(([rule, words]) => html`<option key=${rule} value=${rule}>${words}</option>`)}</select></div>
        ${fields.rule === "quorum" && html`<div class="field grow"><label for="propose-quorum">How many</label>
          <input id="propose-quorum" class="input" required pattern="[0-9]{1,7}%?" title="A number such as 3, or a share such as 60%" value=${fields.quorum} onInput=${set("quorum")} placeholder="3 or 60%" autocomplete="off" /></div>`}
        <div class="field grow"><label for="propose-minutes">Ends</label>
          <select id="propose-minutes" class="input" value=${fields.minutes} onChange=${set("minutes")}>
            ${DEADLINES.map(([minutes, words]) => html`<option key=${minutes} value=${minutes}>in ${words}</option>`)}</select></div></div>
      <div class="field"><label for="propose-body">Description <span class="faint">(optional)</span></label>
        <textarea id="propose-body" class="input" rows="4" value=${fields.body} onInput=${set("body")} placeholder="What they should know." /></div>
      ${problem && html`<p class="note bad" role="alert">${problem.message}</p>`}
    </form><//>`;
}
