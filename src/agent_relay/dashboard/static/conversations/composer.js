// Where a person writes: to one, several, a channel or everyone; as an answer, in a thread.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib/ui.js";
import { newId, postOnce } from "../lib/api.js";
import { addShortcut } from "../lib/keys.js";
import { agents } from "../lib/store.js";
import { orSay, say } from "../lib/toasts.js";
import { Button } from "../parts/button.js";
import { Icon } from "../parts/icon.js";
import { answerTo, change, clear, draftOf, giveUpAnswer, leave } from "./drafts.js";
import { KINDS } from "./kinds.js";
import { showName } from "./place.js";
import { Recipients } from "./recipients.js";
import { showThread } from "./threads.js";

/** The reason of each recipient whose messages wait. */
function sayWhyItWaits(to) {
  const lines = to.map((name) => agents.value.get(name)).filter((agent) => agent?.hold).map((agent) => `${agent.name} waits: ${agent.hold.line}.`);
  if (lines.length) say(`Stored. ${lines.join(" ")}`);
}

const TALLEST_PX = 220;
const SHOWN = 140; // characters of what is answered

/** `last` is the newest message shown, which says who is in a thread. */
export function Composer({ place, last }) {
  const draft = draftOf(place);
  const { text, kind, reply, isChosen } = draft.value;
  const to = draft.value.to ?? [];
  const [isSending, setSending] = useState(false);
  const field = useRef(null);
  const attempt = useRef(null); // what was sent and not answered: the same words again are the same message
  const others = place.to ?? (last ? answerTo(last) : []);
  const set = (part) => change(draft, part);
  const follow = () => { // never under somebody who writes, or is about to
    const isKnown = place.to !== null || last;
    if (isKnown && !text && !reply && !isChosen && document.activeElement !== field.current) set({ to: others });
  };
  useEffect(follow, [others.join()]);
  useEffect(() => () => leave(place), []);
  useLayoutEffect(() => { if (reply) field.current.focus(); }, [reply]); // at once: the next letters are the answer, not shortcuts
  useEffect(() => addShortcut("c", "Write a message", () => field.current.focus(), { group: "Conversations" }), []);
  useLayoutEffect(() => {
    field.current.style.height = "auto";
    field.current.style.height = `${Math.min(TALLEST_PX, field.current.scrollHeight)}px`;
  }, [text]);
  const thread = reply ? (reply.thread ?? reply.messageId) : (place.thread ?? null);
  const canSend = text.trim() && to.length && !isSending;
  const send = () => canSend && orSay(async () => {
    setSending(true);
    try {
      const message = { to: to.length === 1 ? to[0] : to, body: text, kind, thread };
      const said = JSON.stringify(message);
      if (attempt.current?.said !== said) attempt.current = { said, id: newId() };
      const receipt = await postOnce("messages", { ...message, id: attempt.current.id });
      attempt.current = null;
      clear(draft);
      if (receipt.recipients === 0) say("Stored, but there are no recipients.", { tone: "warning" });
      else sayWhyItWaits(to);
    } finally {
      setSending(false);
      field.current?.focus();
    }
  });
  const askWhom = (form) => {
    form.querySelector("[role=combobox]").focus();
    say("Choose a recipient.", { tone: "warning" });
  };
  const onKeyDown = (event) => {
    if (event.key === "Escape" && reply) giveUpAnswer(draft);
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (text.trim() && !to.length) askWhom(event.currentTarget.form);
    else send();
  };
  const onSubmit = (event) => {
    event.preventDefault();
    send();
  };
  return html`<form class="composer" aria-label="Write a message" onSubmit=${onSubmit}>
    ${reply && html`<${Replying} message=${reply} onCancel=${() => giveUpAnswer(draft)} />`}
    <${Recipients} value=${to} onChange=${(targets) => set({ to: targets, isChosen: true })} />
    <textarea ref=${field} rows="1" dir="auto" aria-label="Message" placeholder="Write a message (Markdown works)" value=${text}
      onInput=${(event) => set({ text: event.currentTarget.value })} onKeyDown=${onKeyDown} onBlur=${follow} />
    <div class="composer-foot">
      <select class="quiet-select" aria-label="Kind" value=${kind} onChange=${(event) => set({ kind: event.currentTarget.value })}>
        ${KINDS.map((each) => html`<option key=${each}>${each}</option>`)}
      </select>
      ${thread && html`<span class="badge"><${Icon} name="thread" size=${12} /><span class="clip">${showThread(thread)}</span></span>`}
      <span class="hint faint"><kbd>↵</kbd> sends, <kbd>⇧</kbd><kbd>↵</kbd> new line</span>
      <${Button} kind="primary" small icon="send" type="submit" disabled=${!canSend}>Send<//>
    </div>
  </form>`;
}

function Replying({ message, onCancel }) {
  return html`<div class="replying">
    <${Icon} name="reply" size=${14} />
    <span class="clip">Reply to <strong>${showName(message.from)}</strong>: ${message.body.slice(0, SHOWN)}</span>
    <${Button} kind="quiet" small icon="x" label="Cancel reply" onClick=${onCancel} />
  </div>`;
}
