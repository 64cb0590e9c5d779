// From moments to places on the screen, and the moments that get a line and a label.

import { showPrecisely, showSeconds, showTime } from "../lib/format.js";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  10, 50, 100, 200, 500, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND,
  MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY,
];

const days = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short" });

const SHORTEST_MS = 50;

/** A moment as exactly as a range of that length needs it. */
export const showAt = (ms, span) => (span < 10 * SECOND ? showPrecisely : span < HOUR ? showSeconds : showTime)(ms);

/** A moment as briefly as it can be said today. */
export function showEdge(ms) {
  const isToday = new Date(ms).toDateString() === new Date().toDateString();
  return isToday ? showSeconds(ms) : `${days.format(ms)}, ${showTime(ms)}`;
}

/** Whole moments between two, at least `gap` pixels apart: [{ ms, x, label, isDay }]. */
export function ticksOf({ from, to }, width, gap) {
  const step = STEPS.find((each) => (each / (to - from)) * width >= gap) ?? STEPS.at(-1);
  const offset = new Date(from).getTimezoneOffset() * MINUTE; // so that days begin at midnight here
  const found = [];
  for (let ms = Math.ceil((from - offset) / step) * step + offset; ms <= to; ms += step) {
    const isDay = (ms - offset) % DAY === 0;
    const label = isDay ? days.format(ms) : (step < SECOND ? showPrecisely : step < MINUTE ? showSeconds : showTime)(ms);
    found.push({ ms, x: ((ms - from) / (to - from)) * width, label, isDay });
  }
  return found;
}

/** The window after zooming by `factor` (2: twice as long) around the moment at `share` of its width. */
export function zoom({ from, to }, factor, share) {
  const span = Math.max(SHORTEST_MS, (to - from) * factor);
  const middle = from + (to - from) * share;
  return { from: middle - span * share, to: middle + span * (1 - share) };
}

/** The window, not further back than the oldest event and not further on than now, with a little room at both ends. */
export function confine({ from, to }, oldest, now) {
  const longest = Math.max(now - oldest, MINUTE) * 1.06;
  const span = Math.min(to - from, longest);
  const latest = now + span * 0.04;
  const end = Math.min(Math.max(from + span, oldest + span * 0.5), latest);
  return { from: end - span, to: end };
}
