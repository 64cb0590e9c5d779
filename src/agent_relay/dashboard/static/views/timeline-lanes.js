// The lanes of the timeline: their measures, and what is shown in them.

import { groupAt } from "./event-kinds.js";
import { NONE } from "./timeline-columns.js";

export const AXIS = 30; // pixels of the times at the top
const LOWEST = 38;
const TALLEST = 68;

/** Few lanes are tall, so that they fill the picture; many are low, and scrolled. */
export const laneHeight = (height, count) => Math.floor(Math.min(TALLEST, Math.max(LOWEST, (height - AXIS) / Math.max(1, count))));

/** Which lanes and types are wanted: places of lanes by agent (NONE: hidden), and groups by type (NONE: hidden). */
export function makeFilter(data, lanes, isTypeShown) {
  const laneOf = new Map(lanes.map((name, lane) => [name, lane]));
  return {
    lanes: data.agents.list.map((name) => laneOf.get(name) ?? NONE),
    nobody: laneOf.get("") ?? NONE,
    groups: data.types.list.map((type) => (isTypeShown(type) ? groupAt(type) : NONE)),
  };
}

/** The lane of an agent, and the group of a type; NONE where it is not shown. */
export const laneAt = (filter, agent) => (agent === NONE ? filter.nobody : filter.lanes[agent] ?? NONE);
export const groupShown = (filter, type) => filter.groups[type] ?? NONE;

/** Whether the event at a place of the columns is shown. */
export const isShown = (filter, columns, at) => laneAt(filter, columns.agent[at]) !== NONE && groupShown(filter, columns.type[at]) !== NONE;
