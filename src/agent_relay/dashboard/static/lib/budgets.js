// What is said of a budget: the daemon tells of it at the early alert, and once more when it is spent.

import { showCost } from "./format.js";

const SCOPES = { hour: "The hourly budget", session: "The budget per session", total: "The total budget" };
const FOLLOWS = {
  "pause-spawning": "No more agents are started.", "stop-all": "The relay's agents are stopped.", stop: "Whose budget it is is stopped.",
};

export const isSpent = ({ spentUsd, limitUsd }) => spentUsd >= limitUsd;

/** An event `budget.exceeded`, as a sentence; what follows from it only where it is spent. */
export function describeBudget(event) {
  const sums = `${showCost(event.spentUsd)} of ${showCost(event.limitUsd)}`;
  const whose = event.agent || event.team ? `${event.agent ?? `Team ${event.team}`}'s budget` : (SCOPES[event.budget] ?? `The budget (${event.budget})`);
  if (!isSpent(event)) return `${whose} is nearly spent: ${sums}.`;
  return [`${whose} is spent: ${sums}.`, FOLLOWS[event.action]].filter(Boolean).join(" ");
}
