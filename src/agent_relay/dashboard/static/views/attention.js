// What waits for a person: permissions and questions, the riskiest first. A card that was answered anywhere else goes away at once; one that
// is new takes nobody's place: it waits behind a button. Keys are for the card that was chosen, and for no other.

import { html, loadStyle, useLayoutEffect, useRef, useState } from "../lib/ui.js";
import { decisions } from "../lib/decisions.js";
import { addShortcuts } from "../lib/keys.js";
import { plural } from "../lib/format.js";
import { areRequestsRead, permissions, questions } from "../lib/store.js";
import { say } from "../lib/toasts.js";
import { Button } from "../parts/button.js";
import { Empty, Loading } from "../parts/empty.js";
import { AlertMenu } from "./attention-alerts.js";
import { useSteadyList } from "./attention-list.js";
import { PermissionCard } from "./attention-permission.js";
import { QuestionCard } from "./attention-question.js";

await loadStyle("css/attention.css");

const RANK = { critical: 0, high: 1, medium: 2, low: 3 };

export default function Attention() {
  const { cards, waiting, isSettled, showAll } = useSteadyList(sortCards(), areRequestsRead.value);
  const [chosen, setChosen] = useChosen(cards);
  const [, draw] = useState(0);
  const showNew = () => {
    showAll();
    draw((count) => count + 1);
  };
  useShortcuts(cards, chosen, setChosen, waiting.length > 0, showNew);

  return html`<div class="view"><header class="view-head"><h1>Attention</h1>
      ${cards.length > 0 && html`<span class="faint clip">${describe()}</span>`}
      <div class="tools">${waiting.length > 0 && html`<${NewRequests} waiting=${waiting} onShow=${showNew} />`}<${AlertMenu} /></div></header>
    <div class="view-body attention">
      ${cards.length > 0 && html`<${KeysHint} />`}
      ${cards.map(({ id, kind, about }) => html`<${kind} key=${id} about=${about} isCurrent=${id === chosen} isSettled=${isSettled}
        pending=${decisions.value.get(id) ?? null} onChoose=${() => setChosen(id)} />`)}
      ${!cards.length && (areRequestsRead.value ? html`<${Nothing} />` : html`<${Loading} />`)}
    </div></div>`;
}

/** In the head, where it moves nothing that is being read. */
function NewRequests({ waiting, onShow }) {
  const critical = waiting.filter(({ about }) => about.riskLevel === "critical").length;
  return html`<${Button} kind="primary" small class=${critical && "warn"} data-new=${waiting.length} onClick=${onShow}>
    ${plural(waiting.length, "new request")}${critical ? `, ${critical} critical` : ""} <kbd>n</kbd><//>`;
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
  return html`<${Empty} icon="check" title="Nobody is waiting for you"><p>Agents' permission requests and questions appear here.</p><//>`;
}

function KeysHint() {
  return html`<p class="faint keys-hint"><span><kbd>j</kbd><kbd>k</kbd> select</span><span><kbd>a</kbd> approve</span><span><kbd>d</kbd> deny</span>
    <span><kbd>r</kbd> reason</span><span><kbd>u</kbd> undo</span><span><kbd>1</kbd>–<kbd>9</kbd> answer</span></p>`;
}

/** The riskiest first, then the oldest. */
function sortCards() {
  const asked = [...permissions.value.values()].map((about) => ({ id: about.requestId, kind: PermissionCard, about, rank: RANK[about.riskLevel] }));
  const open = [...questions.value.values()].map((about) => ({ id: about.questionId, kind: QuestionCard, about, rank: RANK.medium }));
  return [...asked, ...open].sort((one, other) => one.rank - other.rank || one.about.requestedAt - other.about.requestedAt);
}

function describe() {
  const asked = permissions.value.size && plural(permissions.value.size, "permission");
  const open = questions.value.size && plural(questions.value.size, "question");
  return [asked, open].filter(Boolean).join(", ");
}

function useShortcuts(cards, chosen, choose, hasNew, showNew) {
  const ids = cards.map((card) => card.id).join(" ");
  useLayoutEffect(() => { // at once: the next key may follow before the next picture
    const move = (step) => () => {
      const at = cards.findIndex((card) => card.id === chosen);
      const next = cards[at < 0 ? 0 : Math.min(Math.max(at + step, 0), cards.length - 1)];
      if (!next) return;
      choose(next.id);
      document.querySelector(`[data-request="${CSS.escape(next.id)}"]`)?.focus();
    };
    const press = (what) => () => {
      if (!cards.length) return;
      if (chosen === null) say("That request is gone, and no other is selected. Press j to select one.", { tone: "warning" });
      else document.querySelector(`[data-request="${CSS.escape(chosen)}"] [data-press="${what}"]:not(:disabled)`)?.click();
    };
    const group = { group: "Attention" };
    return addShortcuts([
      ["j", "Next request", move(1), group], ["k", "Previous request", move(-1), group],
      ["a", "Approve", press("approve"), group], ["d", "Deny", press("deny"), group], ["r", "Give a reason", press("reason"), group],
      ...(hasNew ? [["n", "Show new requests", showNew, group]] : []),
      ...Array.from({ length: 9 }, (_, index) => [String(index + 1), `Answer ${index + 1}`, press(`answer-${index + 1}`), group]),
    ]);
  }, [ids, chosen, hasNew]);
}
