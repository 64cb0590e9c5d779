// Moving and zooming the picture of the graph, and dragging its nodes.

import { useEffect, useRef, useState } from "../lib/ui.js";

const MOVED_PX = 4;
const FURTHEST = 0.3;
const CLOSEST = 5;
const WHOLE = { x: 0, y: 0, scale: 1 };

/** `onDrag(id, place)` is told where a node was put, in the picture's own places. */
export function usePan(box, onDrag) {
  const [view, setView] = useState(WHOLE);
  const held = useRef(null);
  const now = useRef(view);
  now.current = view;
  const drag = useRef(onDrag);
  drag.current = onDrag;
  const zoomAt = (factor, x, y) => setView(({ x: left, y: top, scale }) => {
    const next = Math.min(CLOSEST, Math.max(FURTHEST, scale * factor));
    return { scale: next, x: x - ((x - left) * next) / scale, y: y - ((y - top) * next) / scale };
  });
  const placeOf = (event) => {
    const { left, top } = box.current.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  useEffect(() => {
    const wheel = (event) => {
      event.preventDefault();
      const { x, y } = placeOf(event);
      zoomAt(Math.exp(-event.deltaY * 0.002), x, y);
    };
    const element = box.current;
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);
  const hands = {
    onPointerDown: (event) => {
      if (event.button || event.target.closest("button")) return;
      held.current = { start: placeOf(event), view: now.current, node: event.target.closest("[data-node]")?.dataset.node ?? null, hasMoved: false };
    },
    onPointerMove: (event) => {
      const from = held.current;
      if (!from) return;
      const { x, y } = placeOf(event);
      if (!from.hasMoved && Math.hypot(x - from.start.x, y - from.start.y) < MOVED_PX) return;
      if (!from.hasMoved) box.current.setPointerCapture(event.pointerId);
      from.hasMoved = true;
      if (from.node === null) setView({ ...from.view, x: from.view.x + x - from.start.x, y: from.view.y + y - from.start.y });
      else drag.current(from.node, { x: (x - now.current.x) / now.current.scale, y: (y - now.current.y) / now.current.scale });
    },
    onPointerUp: () => { setTimeout(() => { held.current = null; }); }, // a click that follows is still part of it
    onPointerCancel: () => { held.current = null; },
    onDragStart: (event) => event.preventDefault(),
    onClickCapture: (event) => {
      if (!held.current?.hasMoved) return;
      event.preventDefault();
      event.stopPropagation();
    },
  };
  const zoomBy = (factor) => zoomAt(factor, box.current.clientWidth / 2, box.current.clientHeight / 2);
  return { view, hands, zoomBy, fit: () => setView(WHOLE) };
}
