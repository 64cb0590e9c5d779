// What needs you, and nothing else: requests, messages to you, agents in trouble, budgets, dead letters; the most urgent first. What was
// answered or ended anywhere else goes away at once; what is new takes nobody's place: it waits behind a button. Keys are for the card
// that was chosen, and for no other.

import { html, loadStyle, useLayoutEffect, useRef, useState } from "../lib/ui.js";
import { decisions, undo as undoDecision } from "../lib/decisions.js";
import { addShortcuts } from "../lib/keys.js";
import { plural } from "../lib/format.js";
import { canBeDone, countsByKind, inbox, isInboxRead, later, putOff, setDone } from "../lib/inbox.js";
import { describeItem } from "../lib/inbox-words.js";
import { mark } from "../lib/marks.js";
import { change } from "../lib/router.js";
import { sayTooSoon } from "../lib/settling.js";
import { say } from "../lib/toasts.js";
import { Button } from "../parts/button.js";
import { Empty, Loading } from "../parts/empty.js";
import { Tabs } from "../parts/tabs.js";
import { AlertMenu } from "./inbox-alerts.js";
import { Decided } from "./inbox-decided.js";
import { choices, showUntil } from "./inbox-later.js";
import { showAgain, useSteadyList } from "./inbox-list.js";
import { NoticeCard } from "./inbox-notice.js";
import { PermissionCard } from "./inbox-permission.js";
import { QuestionCard } from "./inbox-question.js";

await loadStyle("css/inbox.css");

const REQUESTS = { permission: PermissionCard, question: QuestionCard };
const findCard = (id) => document.querySelector(`[data-request="${CSS.escape(id)}"], [data-item="${CSS.escape(id)}"]`);

export default function Inbox({ route }) {
  const tab = ["later", "decided"].includes(route.query.tab) ? route.query.tab : "open";
  const tabs = [{ value: "open", label: "Open" }, { value: "later", label: "Later", count: later.value.length }, { value: "decided", label: "Decided" }];
  return html`<${tab === "open" ? Open : Other} tab=${tab} tabs=${html`<${Tabs} label="Which" value=${tab} options=${tabs}
    onChange=${(value) => change({ tab: value === "open" ? null : value }, { replace: true })} />`} />`;
}

function Frame({ tabs, note, tools, children }) {
  return html`<div class="view"><header class="view-head inbox-head"><h1>Inbox</h1>${tabs}${note && html`<span class="faint clip inbox-note">${note}</span>`}
      <div class="tools">${tools}<${AlertMenu} /></div></header>
    <div class="view-body inbox">${children}</div></div>`;
}

function Other({ tab, tabs }) {
  return html`<${Frame} tabs=${tabs}>${tab === "decided" ? html`<${Decided} />` : html`<${Later} />`}<//>`;
}

function Open({ tabs }) {
  const { cards, waiting, isSettled, showAll } = useSteadyList(inbox.value, isInboxRead.value);
  const [chosen, setChosen] = useChosen(cards);
  const [, draw] = useState(0);
  const showNew = () => {
    showAll();
    draw((count) => count + 1);
  };
  useShortcuts({ cards, chosen, choose: setChosen, isSettled, hasNew: waiting.length > 0, showNew });
  const note = countsByKind.value.map(([count, one, many]) => plural(count, one, many)).join(", ");
  return html`<${Frame} tabs=${tabs} note=${cards.length > 0 && note} tools=${waiting.length > 0 && html`<${NewOnes} waiting=${waiting} onShow=${showNew} />`}>
    ${cards.length > 0 && html`<${KeysHint} />`}
    ${cards.map((item) => html`<${Card} key=${item.id} item=${item} isCurrent=${item.id === chosen} isSettled=${isSettled} onChoose=${() => setChosen(item.id)} />`)}
    ${!cards.length && (isInboxRead.value ? html`<${Nothing} />` : html`<${Loading} />`)}
  <//>`;
}

function Card({ item, isCurrent, isSettled, onChoose }) {
  const about = { isCurrent, isSettled, onChoose, onLater: (until) => putItOff(item, until) };
  const kind = REQUESTS[item.kind];
  if (!kind) return html`<${NoticeCard} item=${item} ...${about} onDone=${() => finish(item)} />`;
  return html`<${kind} about=${item.about} pending=${decisions.value.get(item.id) ?? null} ...${about} />`;
}

let takeBack = null; // what was put aside last

function putAside({ id }, words, forget) {
  takeBack = () => {
    showAgain(id);
    forget();
  };
  say(words, { action: { label: "Undo", run: takeBack } });
}
const finish = (item) => putAside(item, "Done.", setDone(item));
const putItOff = (item, until) => putAside(item, `It comes back ${showUntil(until)}.`, putOff(item, until));

/** A decision that can still be taken back goes first. */
function undo() {
  if (decisions.value.size) undoDecision();
  else takeBack?.();
  takeBack = null;
}

function bringBack({ id }) {
  showAgain(id);
  mark({}, [`later:${id}`]);
}

function Later() {
  if (!later.value.length) return html`<${Empty} icon="clock" title="Nothing was put off"><p>What you put off comes back here, and then in the inbox.</p><//>`;
  return html`<ul class="card decided" aria-label="Put off">${later.value.map((item) => html`<li class="decided-row" key=${item.id} data-later=${item.id}>
    <div class="grow"><strong>${describeItem(item).title}</strong><p class="faint">comes back ${showUntil(item.until)}</p></div>
    <${Button} small icon="refresh" onClick=${() => bringBack(item)}>Bring it back now<//></li>`)}</ul>`;
}

/** In the head, where it moves nothing that is being read. */
function NewOnes({ waiting, onShow }) {
  const critical = waiting.filter(({ about }) => about.riskLevel === "critical").length;
  const requests = waiting.filter(({ kind }) => REQUESTS[kind]).length;
  const words = requests === waiting.length ? plural(requests, "new request") : `${waiting.length} new`;
  return html`<${Button} kind="primary" small class=${critical && "warn"} data-new=${waiting.length} onClick=${onShow}>
    ${words}${critical ? `, ${critical} critical` : ""} <kbd>n</kbd><//>`;
}

/** The id of the chosen card. When it goes away no other takes its place: a key pressed for it must not reach the next one. */
function useChosen(cards) {
  const [chosen, setChosen] = useState(null);
  const wasEmpty = useRef(true);
  const isFirst = wasEmpty.current && cards.length > 0;
  const now = isFirst ? cards[0].id : (cards.find((card) => card.id === chosen)?.id ?? null);
  wasEmpty.current = !cards.length;
  if (now !== chosen) setChosen(now);
  return [now, setChosen];
}

function Nothing() {
  return html`<${Empty} icon="check" title="Nothing needs you"><p>Agents' requests, messages to you, and whatever goes wrong appear here.</p><//>`;
}

function KeysHint() {
  return html`<p class="faint keys-hint"><span><kbd>j</kbd><kbd>k</kbd> select</span><span><kbd>a</kbd> approve</span><span><kbd>d</kbd> deny</span>
    <span><kbd>1</kbd>–<kbd>9</kbd> answer</span><span><kbd>e</kbd> done</span><span><kbd>h</kbd> later</span><span><kbd>u</kbd> undo</span></p>`;
}

function useShortcuts({ cards, chosen, choose, isSettled, hasNew, showNew }) {
  const ids = cards.map((card) => card.id).join(" ");
  useLayoutEffect(() => { // at once: the next key may follow before the next picture
    const move = (step) => () => {
      const at = cards.findIndex((card) => card.id === chosen);
      const next = cards[at < 0 ? 0 : Math.min(Math.max(at + step, 0), cards.length - 1)];
      if (!next) return;
      choose(next.id);
      findCard(next.id)?.focus();
    };
    const withChosen = (work) => () => {
      if (!cards.length) return;
      const item = cards.find((card) => card.id === chosen);
      if (item) work(item);
      else say("That one is gone, and no other is selected. Press j to select one.", { tone: "warning" });
    };
    const press = (what) => withChosen(({ id }) => findCard(id)?.querySelector(`[data-press="${what}"]:not(:disabled)`)?.click());
    const done = withChosen((item) => {
      if (!canBeDone(item)) say("This goes away once it is decided. You can put it off: h.", { tone: "warning" });
      else if (isSettled) finish(item);
      else sayTooSoon();
    });
    const putOffAnHour = withChosen((item) => (isSettled ? putItOff(item, choices()[0].until) : sayTooSoon()));
    const group = { group: "Inbox" };
    return addShortcuts([
      ["j", "Next", move(1), group], ["k", "Previous", move(-1), group],
      ["a", "Approve", press("approve"), group], ["d", "Deny", press("deny"), group], ["r", "Give a reason", press("reason"), group],
      ["o", "Open what it is about", press("open"), group], ["e", "Done", done, group], ["h", "Later: in an hour", putOffAnHour, group],
      ["u", "Undo", undo, group],
      ...(hasNew ? [["n", "Show what is new", showNew, group]] : []),
      ...Array.from({ length: 9 }, (_, index) => [String(index + 1), `Answer ${index + 1}`, press(`answer-${index + 1}`), group]),
    ]);
  }, [ids, chosen, hasNew, isSettled]);
}
