// Numbers and moments as people read them.

/** One clock for the whole page, of 24 hours: the daemon's own sentences and the command line count so, too. */
const CLOCK = { hourCycle: "h23", hour: "2-digit", minute: "2-digit" };

const clock = new Intl.DateTimeFormat(undefined, CLOCK);
const seconds = new Intl.DateTimeFormat(undefined, { ...CLOCK, second: "2-digit" });
const precise = new Intl.DateTimeFormat(undefined, { ...CLOCK, second: "2-digit", fractionalSecondDigits: 3 });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
const weekday = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const whole = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const day = 86_400_000;

export const showTime = (ms) => clock.format(ms);
export const showSeconds = (ms) => seconds.format(ms);
export const showPrecisely = (ms) => precise.format(ms);
export const showMoment = (ms) => exact.format(ms);
export const showNumber = (value) => whole.format(value);
export const showCount = (value) => (value < 10_000 ? whole.format(value) : compact.format(value));
export const plural = (count, one, many = `${one}s`) => `${showNumber(count)} ${count === 1 ? one : many}`;

/** Dollars; null where the price is not known. */
export function showCost(usd) {
  if (usd === null || usd === undefined) return "–";
  if (usd > 0 && usd < 0.01) return "<$0.01";
  return `$${usd.toLocaleString(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

export function showDay(ms, now = Date.now()) {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  if (ms >= midnight && ms < midnight + day) return "Today";
  if (ms >= midnight - day && ms < midnight) return "Yesterday";
  return weekday.format(ms);
}

/** "just now", "4m", "3h", "2d": how long ago. */
export function showAgo(ms, now = Date.now()) {
  const past = Math.max(0, now - ms);
  if (past < 45_000) return "now";
  if (past < 3_600_000) return `${Math.max(1, Math.round(past / 60_000))}m`;
  if (past < day) return `${Math.round(past / 3_600_000)}h`;
  return `${Math.round(past / day)}d`;
}

/** "850 ms", "12 s", "4 min 10 s", "2 h 5 min". */
export function showDuration(ms) {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.round(hours / 24)} days`;
}
