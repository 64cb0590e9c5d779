// Putting something off: for an hour, until the evening, tomorrow or next week.

import { html } from "../lib/ui.js";
import { showDay, showTime } from "../lib/format.js";
import { Menu } from "../parts/menu.js";

const HOUR_MS = 3_600_000;
const [MORNING, EVENING] = [9, 18];

/** [{ label, until }], those that are still to come. */
export function choices(now = Date.now()) {
  const at = (days, hour) => {
    const moment = new Date(now);
    moment.setDate(moment.getDate() + days);
    return moment.setHours(hour, 0, 0, 0);
  };
  const untilMonday = ((8 - new Date(now).getDay()) % 7) || 7;
  return [
    { label: "In an hour", until: now + HOUR_MS },
    { label: "This evening", until: at(0, EVENING) },
    { label: "Tomorrow morning", until: at(1, MORNING) },
    { label: "Next Monday", until: at(untilMonday, MORNING) },
  ].filter(({ until }, place) => place === 0 || until > now + HOUR_MS);
}

/** "14:30" today, "Tomorrow, 09:00", "Monday, 23 November, 09:00". */
export function showUntil(until, now = Date.now()) {
  const day = new Date(until).toDateString();
  if (day === new Date(now).toDateString()) return showTime(until);
  if (day === new Date(now + 24 * HOUR_MS).toDateString()) return `tomorrow, ${showTime(until)}`;
  return `${showDay(until, now)}, ${showTime(until)}`;
}

/** `bare`: the sign alone. */
export const LaterMenu = ({ onLater, bare = false }) => html`<${Menu} label="Later" icon="clock" small data-press="later"
  items=${choices().map(({ label, until }) => ({ label, keys: showTime(until), run: () => onLater(until) }))}>${bare ? null : "Later"}<//>`;
