// What waits for a person: permissions and questions, the oldest first. A card that was answered anywhere else goes away at once.

import { html, loadStyle, useLayoutEffect, useState } from "../lib/ui.js";
import { addShortcuts } from "../lib/keys.js";
import { plural } from "../lib/format.js";
import { areRequestsRead, permissions, questions } from "../lib/store.js";
import { Empty, Loading } from "../parts/empty.js";
import { AlertMenu } from "./attention-alerts.js";
import { PermissionCard } from "./attention-permission.js";
import { QuestionCard } from "./attention-question.js";

await loadStyle("css/attention.css");

const RANK = { critical: 0, high: 1, medium: 2, low: 3 };

export default function Attention() {
  const cards = sortCards();
  const [chosen, setChosen] = useState(null);
  const at = Math.max(0, cards.findIndex((card) => card.id === chosen));
  const current = cards[at] ?? null;
  useShortcuts(cards, at, setChosen);

  return html`<div class="view"><header class="view-head"><h1>Attention</h1>
      ${cards.length > 0 && html`<span class="faint">${describe()}</span>`}<div class="tools"><${AlertMenu} /></div></header>
    <div class="view-body attention">
      ${cards.length > 0 && html`<${KeysHint} />`}
      ${cards.map(({ id, kind, about }) => html`<${kind} key=${id} about=${about} isCurrent=${id === current?.id} onChoose=${() => setChosen(id)} />`)}
      ${!cards.length && (areRequestsRead.value ? html`<${Nothing} />` : html`<${Loading} />`)}
    </div></div>`;
}

function Nothing() {
  return html`<${Empty} icon="check" title="Nobody waits for you"><p>Permissions and questions of agents appear here.</p><//>`;
}

function KeysHint() {
  return html`<p class="faint keys-hint"><span><kbd>j</kbd><kbd>k</kbd> choose</span><span><kbd>a</kbd> approve</span><span><kbd>d</kbd> deny</span>
    <span><kbd>r</kbd> reason</span><span><kbd>1</kbd>–<kbd>9</kbd> answer</span></p>`;
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

function useShortcuts(cards, at, choose) {
  const ids = cards.map((card) => card.id).join(" ");
  useLayoutEffect(() => { // at once: the next key may follow before the next picture
    const move = (step) => () => {
      const next = cards[Math.min(Math.max(at + step, 0), cards.length - 1)];
      if (!next) return;
      choose(next.id);
      document.querySelector(`[data-request="${CSS.escape(next.id)}"]`)?.focus();
    };
    const press = (what) => () => document.querySelector(`.request.current [data-press="${what}"]:not(:disabled)`)?.click();
    const group = { group: "Attention" };
    return addShortcuts([
      ["j", "Next request", move(1), group], ["k", "Request before", move(-1), group],
      ["a", "Approve", press("approve"), group], ["d", "Deny", press("deny"), group], ["r", "Give a reason", press("reason"), group],
      ...Array.from({ length: 9 }, (_, index) => [String(index + 1), `Answer ${index + 1}`, press(`answer-${index + 1}`), group]),
    ]);
  }, [ids, at]);
}
