// A recorded terminal beside the replay, at the same moment.

import { html, loadStyle, useEffect, useLayoutEffect, useRef } from "../lib/ui.js";
import { makeTerminal, setLetters } from "./terminals-screen.js";
import { openTerminal } from "./terminals-styles.js";

await Promise.all(["css/terminals.css", "vendor/xterm/xterm.css"].map(loadStyle));

const CLEAR = "\x1bc";

/** The terminal as it was `ms` after the recording's beginning. */
export function CastScreen({ cast, ms }) {
  const place = useRef(null);
  const shown = useRef(null);
  useLayoutEffect(() => {
    const terminal = makeTerminal();
    shown.current = { terminal, next: 0, ms: 0 };
    terminal.resize(cast.columns, cast.rows);
    openTerminal(terminal, place.current);
    const box = place.current.parentElement;
    const watch = new ResizeObserver(() => setLetters(terminal, box.clientWidth, box.clientHeight));
    watch.observe(box);
    return () => {
      watch.disconnect();
      terminal.dispose();
    };
  }, [cast]);
  useEffect(() => showUntil(shown.current, cast, ms), [cast, ms]);
  return html`<div class="screen rp-screen"><div class="xterm-place" ref=${place} /></div>`;
}

/** Going back means from the beginning: a terminal only knows forward. */
function showUntil(shown, cast, ms) {
  let text = "";
  if (ms < shown.ms) {
    text = CLEAR;
    shown.next = 0;
    shown.terminal.resize(cast.columns, cast.rows);
  }
  shown.ms = ms;
  for (; shown.next < cast.events.length && cast.events[shown.next][0] <= ms; shown.next++) {
    const [, kind, data] = cast.events[shown.next];
    if (kind === "o") text += data;
    if (kind !== "r") continue;
    const [columns, rows] = data.split("x").map(Number);
    shown.terminal.write(text);
    text = "";
    if (columns > 0 && rows > 0) shown.terminal.resize(columns, rows);
  }
  if (text) shown.terminal.write(text);
}
