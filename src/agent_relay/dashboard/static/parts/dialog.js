// A dialog in front of everything: <Dialog title="…" onClose=${close} footer=${…}>…</Dialog>; it is there while it is rendered.

import { classes, html, render, useEffect, useRef } from "../lib/ui.js";
import { useSettled } from "../lib/settling.js";
import { Button } from "./button.js";

export function Dialog({ title, onClose, footer, children, width, canClose = true, class: extra }) {
  const dialog = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    (dialog.current.querySelector("[autofocus]") ?? dialog.current).focus();
    return () => before?.focus?.();
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    if (canClose) onClose();
  };
  const outside = (event) => event.target === dialog.current && canClose && onClose();
  return html`<dialog class=${classes("dialog", extra)} tabindex="-1" aria-label=${title} ref=${dialog}
    onCancel=${cancel} onPointerDown=${outside} style=${width ? { "--width": `${width}px` } : {}}>
    <header>
      <h2>${title}</h2>${canClose && html`<${Button} kind="quiet" icon="x" label="Close" onClick=${onClose} />`}
    </header>
    <div class="body">${children}</div>
    ${footer && html`<footer>${footer}</footer>`}
  </dialog>`;
}

/** Asks before something is done that cannot be undone: `if (await confirm({ title, text, action: "Stop", danger: true })) …`. */
export function confirm(about) {
  return new Promise((resolve) => {
    const place = document.createElement("div");
    document.body.append(place);
    const answer = (value) => {
      render(null, place);
      place.remove();
      resolve(value);
    };
    render(html`<${Confirm} ...${about} onAnswer=${answer} />`, place);
  });
}

/** A press that comes as soon as the dialog does was not meant for it. */
function Confirm({ title, text, action, danger = false, onAnswer }) {
  const isSettled = useSettled(title);
  const footer = html`<${Button} onClick=${() => onAnswer(false)}>Cancel<//>
    <${Button} kind="primary" class=${danger && "danger"} autofocus aria-disabled=${!isSettled}
      onClick=${() => isSettled && onAnswer(true)}>${action}<//>`;
  return html`<${Dialog} title=${title} onClose=${() => onAnswer(false)} footer=${footer}><p class="muted">${text}</p><//>`;
}
