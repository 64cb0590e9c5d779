// A button that opens a list of things to do: <Menu label="More" icon="more" items=${[{ label, icon, run, danger }]} />.

import { classes, html, useRef, useState } from "../lib/ui.js";
import { Button } from "./button.js";
import { Icon } from "./icon.js";
import { place } from "./tooltip.js";

export function Menu({ label, items, icon = "more", align = "end", children, ...button }) {
  const list = useRef(null);
  const [isOpen, setOpen] = useState(false);
  const opened = useRef(null);
  const toggle = (event) => {
    opened.current = event.currentTarget;
    list.current.togglePopover();
  };
  const onToggle = (event) => {
    setOpen(event.newState === "open");
    if (event.newState !== "open") return;
    place(list.current, opened.current.getBoundingClientRect(), "bottom", align);
    list.current.querySelector("button")?.focus();
  };
  const run = (item) => {
    list.current.hidePopover();
    opened.current?.focus();
    item.run();
  };
  return html`
    <${Button} kind="quiet" icon=${icon} label=${label} aria-haspopup="menu" aria-expanded=${isOpen} onClick=${toggle} ...${button}>
      ${children}
    <//>
    <div class="menu" role="menu" aria-label=${label} popover="auto" ref=${list} onToggle=${onToggle} onKeyDown=${moveFocus}>
      ${items.filter(Boolean).map((item) => html`<${Item} key=${item.label} ...${item} run=${() => run(item)} />`)}
    </div>`;
}

function Item({ label, icon, keys, danger, run }) {
  return html`<button type="button" role="menuitem" class=${classes("row", danger && "danger")} onClick=${run}>
    ${icon && html`<${Icon} name=${icon} />`}<span class="grow">${label}</span>${keys && html`<kbd>${keys}</kbd>`}
  </button>`;
}

/** The arrow keys among the buttons of a list. */
export function moveFocus(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const rows = [...event.currentTarget.querySelectorAll("button:not(:disabled), a[href]")];
  const next = rows[(rows.indexOf(document.activeElement) + step + rows.length) % rows.length];
  next?.focus();
  event.preventDefault();
}
