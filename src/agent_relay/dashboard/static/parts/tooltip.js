// A note that appears beside what is hovered or focused: <Tip text="Copy" keys="c"><button … /></Tip>. `render` makes richer ones, lazily.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib/ui.js";

const WAIT_MS = 350;
const MARGIN = 8;

export function Tip({ text, keys, render, children, placement = "bottom" }) {
  const [isOpen, setOpen] = useState(false);
  const timer = useRef(0);
  const anchor = useRef(null);
  const show = (wait) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setOpen(true), wait);
  };
  const hide = () => {
    clearTimeout(timer.current);
    setOpen(false);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return html`<span class="tip-anchor" ref=${anchor} onPointerLeave=${hide} onPointerDown=${hide}
    onPointerEnter=${(event) => event.pointerType === "mouse" && show(WAIT_MS)} onFocusIn=${(event) => event.target.matches(":focus-visible") && show(0)} onFocusOut=${hide}
    onKeyDown=${(event) => event.key === "Escape" && hide()}>
    ${children}
    ${isOpen && html`<${Bubble} anchor=${anchor} placement=${placement}>${render ? render() : text}${keys && html` <kbd>${keys}</kbd>`}<//>`}
  </span>`;
}

function Bubble({ anchor, placement, children }) {
  const bubble = useRef(null);
  useLayoutEffect(() => {
    bubble.current.showPopover();
    const move = () => place(bubble.current, (anchor.current.firstElementChild ?? anchor.current).getBoundingClientRect(), placement);
    const observer = new ResizeObserver(move); // it grows when what it shows has been read
    observer.observe(bubble.current);
    move();
    return () => observer.disconnect();
  }, []);
  return html`<div class="tip" role="tooltip" popover="manual" ref=${bubble}>${children}</div>`;
}

/** Puts a popover below (or above, `top`) a rectangle, inside the window. `align`: "center", "start" or "end". */
export function place(element, rect, placement = "bottom", align = "center") {
  const { offsetWidth: width, offsetHeight: height } = element;
  const starts = { start: rect.left, center: rect.left + (rect.width - width) / 2, end: rect.right - width };
  const left = Math.min(Math.max(MARGIN, starts[align]), innerWidth - width - MARGIN);
  const below = rect.bottom + 6;
  const above = rect.top - height - 6;
  const fits = placement === "top" ? above >= MARGIN : below + height > innerHeight - MARGIN;
  element.style.left = `${left}px`;
  element.style.top = `${fits && above >= MARGIN ? above : below}px`;
}
