// What agents were doing when: who has asked a person something waits, whatever it says of itself, as in the list of agents.

import { NONE } from "./timeline-columns.js";
import { laneAt } from "./timeline-lanes.js";

const [SAYS, ASKS, ENDS] = [1, 2, 3];
const meanings = {
  "agent.state": SAYS, "permission.requested": ASKS, "question.requested": ASKS, "permission.resolved": ENDS, "question.resolved": ENDS,
};
const FREE = new Set(["idle", "offline"]); // whoever says so asks nothing any more: the end of a request is lost where a daemon is killed

/** Calls `tell(lane, state, from, until)` for each time in which a lane's agent was in one state, as the first `end` events have it;
 * the last of them lasts until `now`. */
export function findStates({ columns, types, notes }, filter, end, now, tell) {
  const meaningOf = types.list.map((type) => meanings[type] ?? 0);
  const lanes = new Map(); // lane → { said, asked: how many requests are open, from }
  const close = (about, lane, until) => {
    if (until > about.from) tell(lane, about.asked > 0 ? "waiting" : about.said, about.from, until);
    about.from = until;
  };
  for (let at = 0; at < end; at++) {
    const meaning = meaningOf[columns.type[at]];
    const lane = meaning ? laneAt(filter, columns.agent[at]) : NONE;
    if (lane === NONE) continue;
    if (!lanes.has(lane)) lanes.set(lane, { said: null, asked: 0, from: columns.ts[at] });
    const about = lanes.get(lane);
    close(about, lane, columns.ts[at]);
    if (meaning === SAYS) about.said = notes.list[columns.note[at]];
    else about.asked = Math.max(0, about.asked + (meaning === ASKS ? 1 : -1));
    if (meaning === SAYS && FREE.has(about.said)) about.asked = 0;
  }
  lanes.forEach((about, lane) => close(about, lane, now));
}
