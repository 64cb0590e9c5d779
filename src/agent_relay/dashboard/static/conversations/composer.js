// Where a person writes: to one, several, a channel or everyone; as an answer, in a thread.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib/ui.js";
import { post } from "../lib/api.js";
import { addShortcut } from "../lib/keys.js";
import { plural } from "../lib/format.js";
import { orSay, say } from "../lib/toasts.js";
import { OWN_NAME } from "../lib/store.js";
import { Button } from "../parts/button.js";
import { Icon } from "../parts/icon.js";
import { showName, showThread } from "./place.js";
import { Recipients } from "./recipients.js";

const KINDS = ["message", "action", "state", "thinking"];
const TALLEST_PX = 220;
const SHOWN = 140; // characters of what is answered

/** `reply` is the message that is answered, or null; `last` the newest one shown, which says who is in a thread. */
export function Composer({ place, reply, last, onReplied }) {
  const [to, setTo] = useState(place.to ?? []);
  const [text, setText] = useState("");
  const [kind, setKind] = useState("message");
  const [isSending, setSending] = useState(false);
  const field = useRef(null);
  const isChosen = useRef(false); // the person has said who gets it
  const others = place.to ?? (last ? answerTo(last) : []);
  useEffect(() => {
    isChosen.current = false;
    setTo(others);
  }, [place.id]);
  useEffect(() => { if (!text && !reply && !isChosen.current) setTo(others); }, [others.join()]); // never under somebody who writes
  useLayoutEffect(() => { if (reply) field.current.focus(); }, [reply]); // at once: the next letters are the answer, not shortcuts
  useEffect(() => {
    if (reply) setTo(answerTo(reply));
    else if (!isChosen.current) setTo(others);
  }, [reply]);
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
      const receipt = await post("messages", { to: to.length === 1 ? to[0] : to, body: text, kind, thread });
      setText("");
      onReplied();
      if (receipt.recipients === 0) say("Stored, but nobody is there to get it.", { tone: "warning" });
      else if (receipt.queued) say(`Stored. ${plural(receipt.queued, "recipient")} offline: it waits for them.`);
    } finally {
      setSending(false);
      field.current?.focus();
    }
  });
  const askWhom = (form) => {
    form.querySelector("[role=combobox]").focus();
    say("Choose who gets it.", { tone: "warning" });
  };
  const onKeyDown = (event) => {
    if (event.key === "Escape" && reply) onReplied();
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (text.trim() && !to.length) askWhom(event.currentTarget.form);
    else send();
  };
  const choose = (targets) => {
    isChosen.current = true;
    setTo(targets);
  };
  const onSubmit = (event) => {
    event.preventDefault();
    send();
  };
  return html`<form class="composer" aria-label="Write a message" onSubmit=${onSubmit}>
    ${reply && html`<${Replying} message=${reply} onCancel=${onReplied} />`}
    <${Recipients} value=${to} onChange=${choose} />
    <textarea ref=${field} rows="1" aria-label="Message" placeholder="Write a message, Markdown works" value=${text}
      onInput=${(event) => setText(event.currentTarget.value)} onKeyDown=${onKeyDown} />
    <div class="composer-foot">
      <select class="quiet-select" aria-label="Kind" value=${kind} onChange=${(event) => setKind(event.currentTarget.value)}>
        ${KINDS.map((each) => html`<option key=${each}>${each}</option>`)}
      </select>
      ${thread && html`<span class="badge"><${Icon} name="thread" size=${12} /><span class="clip">${showThread(thread)}</span></span>`}
      <span class="hint faint"><kbd>↵</kbd> sends, <kbd>⇧</kbd><kbd>↵</kbd> new line</span>
      <${Button} kind="primary" small icon="send" type="submit" disabled=${!canSend}>Send<//>
    </div>
  </form>`;
}

/** Who gets an answer to a message: its channel, whoever it went to where it was our own, else its sender. */
function answerTo({ from, to }) {
  const isSame = to.startsWith("#") || from === OWN_NAME;
  return isSame ? to.split(",").map((name) => name.trim()).filter(Boolean) : [from];
}

function Replying({ message, onCancel }) {
  return html`<div class="replying">
    <${Icon} name="reply" size=${14} />
    <span class="clip">Answer to <strong>${showName(message.from)}</strong>: ${message.body.slice(0, SHOWN)}</span>
    <${Button} kind="quiet" small icon="x" label="Do not answer" onClick=${onCancel} />
  </div>`;
}
