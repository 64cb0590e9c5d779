// What has just changed on the screen is not yet what a person has read: presses that follow at once were meant for what was there before.

import { useEffect, useRef, useState } from "./ui.js";
import { say } from "./toasts.js";

export const SETTLE_MS = 400;

/** False for a moment whenever `shown` (a text) becomes another one, and at first. */
export function useSettled(shown) {
  const [settled, setSettled] = useState(null);
  const since = useRef({ shown: null, at: 0 });
  if (since.current.shown !== shown) since.current = { shown, at: performance.now() };
  useEffect(() => {
    const timer = setTimeout(() => setSettled(shown), since.current.at + SETTLE_MS - performance.now());
    return () => clearTimeout(timer);
  }, [shown]);
  return settled === shown;
}

/** To be said where a press was not taken. */
export const sayTooSoon = () => say("The list just changed, so nothing was done. Check, then press again.", { tone: "warning" });
