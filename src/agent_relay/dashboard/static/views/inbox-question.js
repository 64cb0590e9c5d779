// A question of an agent, with its options, or with an answer in one's own words.

import { classes, html, useState } from "../lib/ui.js";
import { part, post } from "../lib/api.js";
import { decide } from "../lib/decisions.js";
import { sayTooSoon } from "../lib/settling.js";
import { reveal } from "../lib/visible-text.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { Undo } from "../parts/undo.js";
import { RequestHead } from "./inbox-head.js";

export function QuestionCard({ about, isCurrent, isSettled, pending, onChoose, onLater }) {
  const [own, setOwn] = useState("");

  const answer = (text) => (isSettled ? decide({
    id: about.questionId, about, doing: `Answering “${text}”`,
    send: async () => {
      await post(`agents/${part(about.agentName)}/questions/${part(about.questionId)}/answer`, { answer: text });
      return `Answered ${about.agentName}.`;
    },
  }) : sayTooSoon());
  const send = (event) => {
    event.preventDefault();
    if (own.trim()) answer(own.trim());
  };

  return html`<article class=${classes("card request question", isCurrent && "current")} tabindex="-1" data-request=${about.questionId}
      onFocusIn=${onChoose} onPointerDown=${onChoose} aria-label=${`${about.agentName} asks a question`}>
    <${RequestHead} about=${about} onLater=${onLater}><span class="muted">asks</span><${Badge} tone="accent" icon="help">Question<//><//>
    <div class="body stack" style=${{ "--gap": "12px" }}>
      <p class="asked" dir="auto">${reveal(about.question)}</p>
      ${about.options.length > 0 && html`<div class="stack answers">${about.options.map((option, index) => html`<button type="button" key=${option}
        class="row answer" data-press=${`answer-${index + 1}`} disabled=${pending !== null} aria-disabled=${!isSettled} onClick=${() => answer(option)}>
        <kbd>${index + 1}</kbd><span class="grow" dir="auto">${reveal(option)}</span></button>`)}</div>`}
      ${pending ? html`<${Undo} entry=${pending} />` : html`<form class="line" onSubmit=${send}><input class="input" aria-label="Another answer" value=${own}
          placeholder=${about.options.length ? "Or answer in your own words" : "Your answer"} onInput=${(event) => setOwn(event.currentTarget.value)} />
        <${Button} type="submit" icon="send" disabled=${!own.trim()}>Answer<//></form>`}
    </div>
  </article>`;
}
