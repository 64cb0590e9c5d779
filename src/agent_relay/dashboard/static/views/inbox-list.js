// Which requests are on the screen, in which order. The list does not move under whoever reads it: what is new waits until it is asked for.

import { useRef } from "../lib/ui.js";
import { useSettled } from "../lib/settling.js";
import { wordingOf } from "../lib/decisions.js";

const returning = new Set();

/** What a person took back themselves is at its place again at once. */
export const showAgain = (id) => returning.add(id);

/** `all` are the open cards as they would be sorted now. `{ cards, waiting, isSettled, showAll }`: those shown, those that wait, whether
 * what is shown has been the same for long enough to be decided on, and how to show those that wait. */
export function useSteadyList(all, isRead) {
  const order = useRef([]);
  const wants = useRef(false);
  const open = new Map(all.map((card) => [card.id, card]));
  const kept = order.current.filter((id) => open.has(id));
  order.current = isRead && (wants.current || !kept.length) ? [...open.keys()] : kept;
  wants.current = false;
  for (const { id } of all.filter((card) => returning.delete(card.id) && !order.current.includes(card.id))) {
    const before = all.slice(0, all.indexOf(open.get(id))).findLast((card) => order.current.includes(card.id));
    order.current.splice(before ? order.current.indexOf(before.id) + 1 : 0, 0, id);
  }
  const cards = order.current.map((id) => open.get(id));
  const shown = new Set(order.current);
  return {
    cards,
    waiting: all.filter((card) => !shown.has(card.id)),
    isSettled: useSettled(cards.map(({ about }) => wordingOf(about)).join("\n")),
    showAll: () => { wants.current = true; },
  };
}
