// Dead letters: messages that could not be delivered and why, another try, and an end to it; one, several or all of them.

import { html, loadStyle, useEffect, useRef, useState } from "../lib/ui.js";
import { get, part, post, remove } from "../lib/api.js";
import { plural, showAgo, showMoment } from "../lib/format.js";
import { onEvents, onReset } from "../lib/live.js";
import { useReading } from "../lib/reading.js";
import { select, selection } from "../lib/router.js";
import { readNumbers, status } from "../lib/store.js";
import { say } from "../lib/toasts.js";
import { reveal } from "../lib/visible-text.js";
import { Avatar } from "../parts/avatar.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { confirm } from "../parts/dialog.js";
import { Empty, Failed, Loading } from "../parts/empty.js";
import { Tip } from "../parts/tooltip.js";
import { reasonOf, whyItDied } from "./dead-letter-reasons.js";

await loadStyle("css/dead-letters.css");

const MOST = 200;

const ACTS = {
  retry: { run: (id) => post(`dead-letters/${part(id)}/retry`), done: "sent again", failed: "could not be sent again" },
  dismiss: { run: (id) => remove(`dead-letters/${part(id)}`), done: "dismissed", failed: "could not be dismissed" },
};

/** A message that several could not get is one letter for each of them; what is done is done for all. */
const idsOf = (letters) => [...new Set(letters.map((letter) => letter.messageId))];
const keyOf = ({ messageId, dead }) => `${messageId} ${dead.to}`;

export default function DeadLetters() {
  const count = status.value?.deadLetters ?? 0;
  const { value, error, again } = useReading(() => get("dead-letters", { limit: MOST }), [count]);
  const [gone, setGone] = useState(new Set());
  const [chosen, setChosen] = useState(new Set());
  const [isBusy, setBusy] = useState(false);
  useEffect(() => onReset(again), []);
  useEffect(() => onEvents(["message.*"], readNumbers), []);
  const letters = (value?.deadLetters ?? []).filter((letter) => !gone.has(letter.messageId));
  const picked = letters.filter((letter) => chosen.has(keyOf(letter)));

  const act = async (name, wanted) => {
    const { run, done, failed } = ACTS[name];
    setBusy(true);
    const [finished, problems] = await runAll(idsOf(wanted), run);
    setGone((now) => new Set([...now, ...finished]));
    setChosen(new Set());
    setBusy(false);
    readNumbers();
    if (finished.length) say(`${plural(finished.length, "message")} ${done}.`, { tone: "success" });
    if (problems.length) say(`${plural(problems.length, "message")} ${failed}: ${problems[0].message}`, { tone: "danger" });
  };
  const ask = async (name, wanted) => {
    const many = plural(idsOf(wanted).length, "message");
    const about = name === "retry"
      ? { title: `Send ${many} again?`, text: "Each is sent as a new message. Offline agents get them when they come back.", action: "Send again" }
      : { title: `Dismiss ${many}?`, text: "Nobody gets them any more. They stay in their conversations.", action: "Dismiss" };
    if (await confirm(about)) await act(name, wanted);
  };
  const toggle = (letter) => setChosen((now) => {
    const next = new Set(now);
    if (!next.delete(keyOf(letter))) next.add(keyOf(letter));
    return next;
  });
  const toggleAll = () => setChosen(picked.length === letters.length ? new Set() : new Set(letters.map(keyOf)));

  return html`<div class="view"><header class="view-head"><h1>Dead letters</h1>
      ${letters.length > 0 && html`<span class="faint">${plural(letters.length, "message")}</span>`}</header>
    <div class="view-body letters">
      ${error && html`<${Failed} error=${error} again=${again} />`}
      ${!error && value === null && html`<${Loading} />`}
      ${!error && value !== null && !letters.length && html`<${Empty} icon="archive" title="No dead letters">
        <p>Messages that were not delivered in time end up here. You can send them again.</p><//>`}
      ${letters.length > 0 && html`<div class="card letter-card">
        <${Bulk} letters=${letters} picked=${picked} isBusy=${isBusy} onToggle=${toggleAll} onAct=${ask} />
        <ul>${letters.map((letter) => html`<li key=${keyOf(letter)}><${Letter} letter=${letter} isPicked=${chosen.has(keyOf(letter))} isBusy=${isBusy}
          onPick=${() => toggle(letter)} onAct=${(name) => act(name, [letter])} /></li>`)}</ul></div>`}
    </div></div>`;
}

async function runAll(ids, run) {
  const [finished, problems] = [[], []];
  for (const id of ids) {
    try {
      await run(id);
      finished.push(id);
    } catch (error) {
      problems.push(error);
      if (error.isAway) break; // the others would fail as well
    }
  }
  return [finished, problems];
}

/** For those that are chosen, or for all. */
function Bulk({ letters, picked, isBusy, onToggle, onAct }) {
  const wanted = picked.length ? picked : letters;
  const which = picked.length ? plural(idsOf(picked).length, "message") : "all";
  const box = useRef(null);
  useEffect(() => { box.current.indeterminate = picked.length > 0 && picked.length < letters.length; }, [picked.length, letters.length]);
  return html`<div class="letter-bulk line">
    <label class="check"><input type="checkbox" ref=${box} checked=${picked.length === letters.length} onChange=${onToggle} />
      ${picked.length ? `${picked.length} selected` : "Select all"}</label>
    <span class="grow" />
    <${Button} small icon="refresh" disabled=${isBusy} onClick=${() => onAct("retry", wanted)}>Send ${which} again<//>
    <${Button} small icon="check" disabled=${isBusy} onClick=${() => onAct("dismiss", wanted)}>Dismiss ${which}<//>
  </div>`;
}

function Letter({ letter, isPicked, isBusy, onPick, onAct }) {
  const { messageId, from, body, dead, ts, kind } = letter;
  const isChosen = selection.value?.kind === "message" && selection.value.id === messageId;
  return html`<div class="letter" aria-current=${isChosen ? "true" : undefined} data-letter=${messageId}>
    <input type="checkbox" checked=${isPicked} onChange=${onPick} aria-label=${`Select the message of ${from} to ${dead.to}`} />
    <${Avatar} name=${from} size=${28} />
    <div class="grow letter-main">
      <button type="button" class="letter-open" onClick=${() => select("message", messageId)}>
        <span class="line"><strong class="clip">${from}</strong><span class="faint">→</span><strong class="clip">${dead.to}</strong>
          ${kind !== "message" && html`<${Badge}>${kind}<//>`}<${Badge} tone="danger">${reasonOf(dead.code)}<//></span>
        <span class="letter-body" dir="auto">${body}</span>
      </button>
      <${Why} letter=${letter} />
    </div>
    <${Tip} text=${`Written ${showMoment(ts)}, given up ${showMoment(dead.at)}`}>
      <time class="faint tabular" tabindex="0" datetime=${new Date(dead.at).toISOString()}>${showAgo(dead.at)}</time><//>
    <${Button} small icon="refresh" disabled=${isBusy} onClick=${() => onAct("retry")} aria-label=${`Send again to ${dead.to}`}>Send again<//>
    <${Button} kind="quiet" small icon="check" disabled=${isBusy} label=${`Dismiss the message to ${dead.to}`} onClick=${() => onAct("dismiss")} />
  </div>`;
}

/** What stood in its way, read once the letter is seen. */
function Why({ letter }) {
  const line = useRef(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      setSeen(true);
    });
    observer.observe(line.current);
    return () => observer.disconnect();
  }, []);
  const { value } = useReading(() => (isSeen ? get(`messages/${part(letter.messageId)}/timeline`) : Promise.resolve(null)), [letter.messageId, isSeen]);
  return html`<p class="letter-why faint" ref=${line}>${reveal(whyItDied(letter, value?.timeline ?? []))}</p>`;
}
