// A question of an agent, with its options, or with an answer in one's own words.

import { classes, html, useState } from "../lib/ui.js";
import { part, post } from "../lib/api.js";
import { questions, readRequests } from "../lib/store.js";
import { say } from "../lib/toasts.js";
import { reveal } from "../lib/visible-text.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { RequestHead } from "./attention-head.js";

export function QuestionCard({ about, isCurrent, onChoose }) {
  const [own, setOwn] = useState("");
  const [doing, setDoing] = useState(null);

  const answer = async (text) => {
    setDoing(text);
    try {
      await post(`agents/${part(about.agentName)}/questions/${part(about.questionId)}/answer`, { answer: text });
      const next = new Map(questions.value);
      next.delete(about.questionId);
      questions.value = next;
      say(`${about.agentName} has its answer.`, { tone: "success" });
    } catch (error) {
      setDoing(null);
      say(error.message, { tone: "danger" });
      readRequests();
    }
  };
  const send = (event) => {
    event.preventDefault();
    if (own.trim()) answer(own.trim());
  };

  return html`<article class=${classes("card request question", isCurrent && "current")} tabindex="-1" data-request=${about.questionId}
      onFocusIn=${onChoose} onPointerDown=${onChoose} aria-label=${`${about.agentName} asks a question`}>
    <${RequestHead} about=${about}><span class="muted">asks</span><${Badge} tone="accent" icon="help">Question<//><//>
    <div class="body stack" style=${{ "--gap": "12px" }}>
      <p class="asked">${reveal(about.question)}</p>
      ${about.options.length > 0 && html`<div class="stack answers">${about.options.map((option, index) => html`<button type="button" key=${option}
        class="row answer" data-press=${`answer-${index + 1}`} disabled=${doing !== null} onClick=${() => answer(option)}>
        <kbd>${index + 1}</kbd><span class="grow">${reveal(option)}</span>${doing === option && html`<span class="spinner" />`}</button>`)}</div>`}
      <form class="line" onSubmit=${send}><input class="input" aria-label="Another answer" value=${own}
          placeholder=${about.options.length ? "Or answer in your own words" : "Your answer"} onInput=${(event) => setOwn(event.currentTarget.value)} />
        <${Button} type="submit" icon="send" disabled=${!own.trim() || doing !== null}>Answer<//></form>
    </div>
  </article>`;
}
