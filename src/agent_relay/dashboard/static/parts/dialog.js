// A dialog in front of everything: <Dialog title="…" onClose=${close} footer=${…}>…</Dialog>; it is there while it is rendered.

import { classes, html, render, useEffect, useId, useRef } from "../lib/ui.js";
import { Button } from "./button.js";

export function Dialog({ title, onClose, footer, children, width, canClose = true, class: extra }) {
  const dialog = useRef(null);
  const heading = useId();
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
  return html`<dialog class=${classes("dialog", extra)} tabindex="-1" aria-labelledby=${heading} ref=${dialog}
    onCancel=${cancel} onPointerDown=${outside} style=${width ? { "--width": `${width}px` } : {}}>
    <header>
      <h2 id=${heading}>${title}</h2>${canClose && html`<${Button} kind="quiet" icon="x" label="Close" onClick=${onClose} />`}
    </header>
    <div class="body">${children}</div>
    ${footer && html`<footer>${footer}</footer>`}
  </dialog>`;
}

/** Asks before something is done that cannot be undone: `if (await confirm({ title, text, action: "Stop", danger: true })) …`. */
export function confirm({ title, text, action, danger = false }) {
  return new Promise((resolve) => {
    const place = document.createElement("div");
    document.body.append(place);
    const answer = (value) => {
      render(null, place);
      place.remove();
      resolve(value);
    };
    const footer = html`<${Button} onClick=${() => answer(false)}>Cancel<//>
      <${Button} kind="primary" class=${danger && "danger"} autofocus onClick=${() => answer(true)}>${action}<//>`;
    render(html`<${Dialog} title=${title} onClose=${() => answer(false)} footer=${footer}><p class="muted">${text}</p><//>`, place);
  });
}
