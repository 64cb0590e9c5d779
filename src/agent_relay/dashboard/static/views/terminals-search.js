// Finding words in what a terminal shows and showed: from the end backwards, each selected and scrolled to.

import { html, useEffect, useRef, useState } from "../lib/ui.js";
import { Button } from "../parts/button.js";

/** The places of the words in the terminal's lines: [{ row, column }], the last first. */
function find(terminal, words) {
  const { active } = terminal.buffer;
  const wanted = words.toLowerCase();
  const found = [];
  for (let row = active.length - 1; row >= 0; row--) {
    const text = active.getLine(row)?.translateToString(true).toLowerCase() ?? "";
    for (let column = text.lastIndexOf(wanted); column >= 0; column = column > 0 ? text.lastIndexOf(wanted, column - 1) : -1) found.push({ row, column });
  }
  return found;
}

export function TerminalSearch({ terminal, name, onClose }) {
  const field = useRef(null);
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const found = words && terminal.current ? find(terminal.current, words) : [];
  useEffect(() => { field.current.focus(); }, []);
  useEffect(() => {
    const hit = found[at];
    if (!hit) terminal.current?.clearSelection();
    else {
      terminal.current.select(hit.column, hit.row, words.length);
      terminal.current.scrollToLine(Math.max(0, hit.row - 3));
    }
  }, [words, at]);
  const step = (by) => found.length && setAt((at + by + found.length) % found.length);
  const onKeyDown = (event) => {
    if (event.key === "Escape") onClose();
    else if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const write = (event) => {
    setWords(event.currentTarget.value);
    setAt(0);
  };
  return html`<div class="pane-search line"><input ref=${field} class="input grow" type="search" aria-label=${`Search in the terminal of ${name}`} placeholder="Search" value=${words} onInput=${write} onKeyDown=${onKeyDown} />
    <span class="faint tabular" role="status">${words ? `${found.length ? at + 1 : 0} of ${found.length}` : ""}</span>
    <${Button} kind="quiet" small icon="x" label="Close search" onClick=${onClose} /></div>`;
}
