// One terminal: shows what the stream tells, in the size the agent's own has, and sends keys while the keyboard is ours.

import { effect, html, useEffect, useLayoutEffect, useRef, useState } from "../lib/ui.js";
import { theme, token } from "../lib/theme.js";
import { Terminal } from "../vendor/xterm/xterm.mjs";
import { get, part } from "../lib/api.js";
import { confirm } from "../parts/dialog.js";
import { withCtrl } from "./terminals-keybar.js";
import { note } from "./terminals-recording.js";
import { keyboardOf, releaseKeyboard, typeKeys } from "./terminals-keyboard.js";
import { followTerminal } from "./terminals-stream.js";
import { openTerminal } from "./terminals-styles.js";

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const SMALLEST_PX = 11; // what does not fit then is scrolled to: smaller letters nobody reads
const LARGEST_PX = 14;
const PADDING_PX = 20;
const LINE_HEIGHT = 1.32; // of the font
const MOST_LINES = 3_000;
const PAST_LINES = 1_000;

await document.fonts.load(`13px ${token("--mono").split(",")[0]}`).catch(() => {});

const letter = document.createElement("canvas").getContext("2d");
letter.font = `100px ${token("--mono")}`;
const LETTER_WIDTH = letter.measureText("M").width / 100;

/** `room` is the height that there is, null where it does not matter. `onTitle` is told what the program calls itself; letters are never smaller than `smallest`. */
export function Screen({ agent, room, onTitle, smallest = SMALLEST_PX, hasPast = false, handle = null }) {
  const place = useRef(null);
  const shown = useRef(null);
  const [words, setNote] = useState("Reading…");
  const [size, setSize] = useState(null);

  useLayoutEffect(() => {
    const terminal = makeTerminal();
    shown.current = terminal;
    if (handle) handle.current = terminal;
    openTerminal(terminal, place.current);
    const early = []; // came while what was before is read
    let past = null;
    const hear = (said) => {
      note(agent, said);
      if (past === null && said.type === "snapshot" && hasPast) {
        show(said);
        past = Promise.all([readPast(agent), new Promise((done) => { terminal.write("", done); })]).then(([lines]) => {
          past = false;
          if (!shown.current) return;
          putAbove(terminal, lines, said);
          early.splice(0).forEach(show);
        });
      } else if (past) early.push(said);
      else show(said);
    };
    const show = (said) => {
      if (said.type === "snapshot") {
        terminal.reset();
        terminal.resize(said.columns, said.rows);
        setSize(`${said.columns}x${said.rows}`);
        setNote(null);
      }
      if (said.text !== undefined) terminal.write(said.text);
      if (said.type === "end") setNote("The program has ended.");
      if (said.type === "gone") setNote("No terminal to show: the relay does not run this agent.");
      if (said.type === "lost") setNote("Reconnecting…");
    };
    const undo = [
      followTerminal(agent, hear),
      effect(() => { theme.value; terminal.options.theme = readTheme(); }),
      effect(() => setHands(terminal, keyboardOf.value === agent)),
      terminal.onTitleChange(onTitle),
      terminal.onData((text) => keyboardOf.value === agent && typeKeys(withCtrl(text))),
      terminal.onBinary((text) => keyboardOf.value === agent && typeKeys(text)),
    ];
    terminal.attachCustomKeyEventHandler((event) => {
      if (event.type !== "keydown" || event.key !== "Escape" || !event.shiftKey) return true;
      releaseKeyboard();
      return false;
    });
    return () => {
      undo.forEach((each) => (each.dispose ? each.dispose() : each()));
      terminal.dispose();
      shown.current = null;
    };
  }, [agent]);

  useEffect(() => {
    const frame = place.current?.parentElement;
    if (!frame) return undefined; // it is gone already
    const fit = () => shown.current && setLetters(shown.current, frame.clientWidth, room, smallest);
    const watch = new ResizeObserver(fit);
    watch.observe(frame);
    fit();
    return () => watch.disconnect();
  }, [agent, room, size, smallest]);

  return html`<div class="screen"><div class="xterm-place" ref=${place} data-keys=${keyboardOf.value === agent ? "own" : undefined} data-terminal=${agent} />
    ${words && html`<p class="screen-note" role="status">${words}</p>`}</div>`;
}

/** Puts above what the stream began with whatever was printed before that; the stream itself may go back further than the screen. */
function putAbove(terminal, lines, { text, rows }) {
  const { active } = terminal.buffer;
  let have = active.length;
  while (have > 0 && !active.getLine(have - 1).translateToString(true)) have--;
  const above = lines.slice(0, Math.max(0, lines.length - have));
  if (!above.length) return;
  terminal.reset();
  terminal.write(`${above.join("\r\n")}${"\r\n".repeat(rows)}`);
  terminal.write(text);
}

/** What was printed before the page was opened, the newest lines at the end; none where there is none. */
async function readPast(agent) {
  try {
    return (await get(`agents/${part(agent)}/output`, { lines: PAST_LINES })).lines;
  } catch {
    return [];
  }
}

export function makeTerminal() {
  const terminal = new Terminal({
    scrollback: MOST_LINES, fontFamily: token("--mono"), fontSize: 12, cursorStyle: "block",
    cursorInactiveStyle: "outline", disableStdin: true, theme: readTheme(), linkHandler: { activate: openLink }, minimumContrastRatio: 1,
  });
  // What a program asks its terminal was answered where it runs; a second answer would be typed into it.
  const silent = () => true;
  for (const id of [{ final: "c" }, { prefix: ">", final: "c" }, { prefix: "=", final: "c" }, { final: "n" }, { prefix: "?", final: "n" }, { final: "t" },
    { intermediates: "$", final: "p" }, { prefix: "?", intermediates: "$", final: "p" }, { prefix: ">", final: "q" }]) {
    terminal.parser.registerCsiHandler(id, silent);
  }
  terminal.parser.registerDcsHandler({ intermediates: "$", final: "q" }, silent);
  for (const code of [4, 10, 11, 12]) terminal.parser.registerOscHandler(code, (data) => data.includes("?"));
  return terminal;
}

function setHands(terminal, areOurs) {
  terminal.options.disableStdin = !areOurs;
  terminal.options.cursorBlink = areOurs;
  if (areOurs) terminal.focus();
}

export function setLetters(terminal, width, room, smallest = SMALLEST_PX) {
  const byWidth = (width - PADDING_PX) / (terminal.cols * LETTER_WIDTH);
  const byHeight = room === null ? LARGEST_PX : (room - PADDING_PX) / (terminal.rows * LINE_HEIGHT);
  const size = Math.max(smallest, Math.min(byWidth, byHeight, LARGEST_PX));
  terminal.options.fontSize = Math.floor(size * 4) / 4;
}

function readTheme() {
  const colours = COLOURS.flatMap((name) => [[name, token(`--term-${name}`)], [`bright${name[0].toUpperCase()}${name.slice(1)}`, token(`--term-bright-${name}`)]]);
  return {
    background: token("--term-back"), foreground: token("--term-text"), cursor: token("--term-cursor"), cursorAccent: token("--term-back"),
    selectionBackground: token("--term-selection"), ...Object.fromEntries(colours),
  };
}

/** A link that a program wrote may say one thing and lead to another. The library passes on web addresses alone. */
async function openLink(event, address) {
  event.preventDefault();
  if (await confirm({ title: "Open this link?", text: address, action: "Open" })) window.open(address, "_blank", "noopener,noreferrer");
}
