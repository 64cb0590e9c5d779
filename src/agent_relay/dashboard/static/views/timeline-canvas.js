// The lanes: names at the left, the picture beside them, moved and zoomed with wheel, fingers, mouse and keys.

import { html, useEffect, useRef, useSignal, useSignalEffect } from "../lib/ui.js";
import { showDuration, showMoment, showNumber } from "../lib/format.js";
import { oncePerFrame } from "../lib/frames.js";
import { select, selection } from "../lib/router.js";
import { showName } from "../conversations/place.js";
import { theme } from "../lib/theme.js";
import { Avatar } from "../parts/avatar.js";
import { Icon } from "../parts/icon.js";
import { groupOf, groups } from "./event-kinds.js";
import { NONE } from "./timeline-columns.js";
import { Picture } from "./timeline-draw.js";
import { AXIS, laneHeight } from "./timeline-lanes.js";
import { readColours } from "./timeline-paint.js";
import { zoom } from "./timeline-scale.js";

const MOVED_PX = 4; // less is a click
const ZOOM_PER_PX = 0.0022;

/** `frame`: a signal of { from, to }; `look(frame)` asks for another one. `filter` and `lanes` are signals. */
export function TimelineCanvas({ data, frame, look, lanes, filter }) {
  const canvas = useRef(null);
  const labels = useRef(null);
  const picture = useRef(null);
  picture.current ??= new Picture(data);
  const hover = useSignal(null); // { x, y, hit }
  const size = useSignal({ width: 0, height: 0 });
  const colours = useRef(null);
  const isColoured = useRef(null);

  const paint = useRef(oncePerFrame(() => {
    const { width, height } = size.peek();
    if (!canvas.current || !width) return;
    const { from, to } = frame.peek();
    if (isColoured.current !== theme.peek()) [colours.current, isColoured.current] = [readColours(), theme.peek()];
    const chosen = selection.peek();
    const shown = lanes.peek();
    picture.current.draw(canvas.current.getContext("2d"), {
      width, height, ratio: devicePixelRatio, window: { from, to }, lanes: shown, tall: laneHeight(height, shown.length), filter: filter.peek(),
      colours: colours.current, now: Date.now(), scroll: labels.current.scrollTop, hover: hover.peek()?.x ?? null,
      selected: chosen?.kind === "event" ? Number(chosen.id) : null,
    });
  })).current;

  useSignalEffect(() => {
    [data.version.value, frame.value, filter.value, theme.value, selection.value, hover.value].forEach(() => {});
    const { width, height } = size.value;
    const [wide, tall] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
    if (canvas.current.width !== wide || canvas.current.height !== tall) Object.assign(canvas.current, { width: wide, height: tall });
    paint();
  });
  useEffect(() => {
    const box = canvas.current.parentElement;
    const observer = new ResizeObserver(() => { size.value = { width: box.clientWidth, height: box.clientHeight }; });
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  const hands = usePointers({ canvas, labels, picture, frame, look, hover, size });
  const style = { "--lane": `${laneHeight(size.value.height, lanes.value.length)}px`, "--axis": `${AXIS}px` };
  return html`<div class="tl-body" style=${style}>
    <div class="tl-labels" ref=${labels} onScroll=${paint} tabindex="-1">
      <ul>${lanes.value.map((name) => html`<li key=${name}><${LaneLabel} name=${name} /></li>`)}</ul>
    </div>
    <div class="tl-picture">
      <canvas data-timeline ref=${canvas} tabindex="0" role="img" aria-label=${aboutPicture(lanes.value, frame.value)} ...${hands} />
      <${Hint} hover=${hover} data=${data} lanes=${lanes.value} />
    </div>
  </div>`;
}

const aboutPicture = (lanes, { from, to }) =>
  `Events of ${lanes.length} agents from ${showMoment(from)} to ${showMoment(to)}. The table shows the same as text.`;

function LaneLabel({ name }) {
  if (!name) return html`<span class="tl-label"><${Icon} name="bolt" /><span class="clip">The relay</span></span>`;
  return html`<button type="button" class="tl-label" onClick=${() => select("agent", name)}>
    <${Avatar} name=${showName(name)} size=${22} /><span class="clip">${showName(name)}</span>
  </button>`;
}

/** Mouse, fingers and wheel on the picture. */
function usePointers({ canvas, labels, picture, frame, look, hover, size }) {
  const held = useRef(new Map()); // pointers that are down
  const drag = useRef(null);
  const placeOf = (event) => {
    const box = canvas.current.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const begin = () => {
    const points = [...held.current.values()];
    drag.current = { frame: frame.peek(), points, scroll: labels.current.scrollTop, hasMoved: false };
  };
  const move = (event) => {
    if (!held.current.has(event.pointerId)) {
      const { x, y } = placeOf(event);
      hover.value = event.pointerType === "touch" ? null : { x, y, hit: picture.current.find(x, y) };
      return;
    }
    held.current.set(event.pointerId, placeOf(event));
    follow(drag.current, [...held.current.values()]);
  };
  const follow = (from, points) => {
    const [a, b] = [from.points, points].map(summarize);
    from.hasMoved ||= Math.hypot(b.x - a.x, b.y - a.y) > MOVED_PX || points.length > 1;
    if (!from.hasMoved) return;
    hover.value = null;
    const { width } = size.peek();
    const factor = a.apart > 20 && b.apart > 20 ? a.apart / b.apart : 1;
    const grown = zoom(from.frame, factor, a.x / width);
    const by = ((b.x - a.x) / width) * (grown.to - grown.from);
    look({ from: grown.from - by, to: grown.to - by });
    labels.current.scrollTop = from.scroll - (b.y - a.y);
  };
  const release = (event) => {
    const wasHeld = held.current.delete(event.pointerId);
    const isClick = wasHeld && event.type === "pointerup" && !drag.current?.hasMoved && held.current.size === 0;
    if (isClick) click(placeOf(event));
    if (held.current.size) begin();
  };
  const click = ({ x, y }) => {
    const hit = picture.current.find(x, y);
    if (!hit) return;
    if ("index" in hit) select("event", picture.current.data.columns.seq[hit.index]);
    else look(zoom({ from: hit.from, to: hit.to }, 12, 0.5)); // a bar is many: closer, until they can be told apart
  };
  const wheel = (event) => {
    event.preventDefault();
    const { from, to } = frame.peek();
    const { width } = size.peek();
    const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const factor = Math.exp(event.deltaY * ZOOM_PER_PX * (event.ctrlKey ? 4 : 1)); // pinching on a touchpad comes with Ctrl, in small steps
    const by = ((event.deltaX || event.deltaY) / width) * (to - from);
    look(isSideways ? { from: from + by, to: to + by } : zoom({ from, to }, factor, placeOf(event).x / width));
  };
  useEffect(() => {
    const element = canvas.current;
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);
  const press = (event) => {
    if (event.button) return;
    canvas.current.setPointerCapture(event.pointerId);
    held.current.set(event.pointerId, placeOf(event));
    begin();
  };
  return { onPointerDown: press, onPointerMove: move, onPointerUp: release, onPointerCancel: release, onPointerLeave: () => { hover.value = null; } };
}

const summarize = (points) => ({ x: mean(points, "x"), y: mean(points, "y"), apart: points.length > 1 ? Math.abs(points[0].x - points[1].x) : 0 });
const mean = (points, name) => points.reduce((sum, each) => sum + each[name], 0) / points.length;

/** What is under the pointer, in words. */
function Hint({ hover, data, lanes }) {
  if (!hover.value?.hit) return null;
  const { x, y, hit } = hover.value;
  const style = { left: `${x}px`, top: `${y + 14}px`, transform: x > 220 ? "translateX(calc(-100% - 8px))" : "translateX(8px)" };
  return html`<div class="tl-hint" style=${style} aria-hidden="true">
    ${"index" in hit ? html`<${EventHint} data=${data} at=${hit.index} />` : html`<${SumHint} hit=${hit} name=${lanes[hit.lane]} />`}
  </div>`;
}

function EventHint({ data, at }) {
  const { columns } = data;
  const type = data.types.list[columns.type[at]];
  const note = data.notes.list[columns.note[at]];
  const to = columns.to[at] === NONE ? null : data.agents.list[columns.to[at]];
  return html`<strong><i style=${{ background: `var(${groupOf(type).colour})` }} />${type}</strong>
    <span>${showMoment(columns.ts[at])}</span>
    ${(note || to) && html`<span>${[note, to && type.startsWith("message") && `to ${to}`].filter(Boolean).join(" · ")}</span>`}
    ${columns.duration[at] > 0 && html`<span>${showDuration(columns.duration[at])}</span>`}`;
}

function SumHint({ hit, name }) {
  return html`<strong>${name || "The relay"} · ${showNumber(hit.total)} events</strong><span>${showMoment(hit.from)}</span>
    ${groups.map(({ id, title, colour }, group) => hit.counts[group] > 0 && html`<span key=${id}>
      <i style=${{ background: `var(${colour})` }} />${title} ${showNumber(hit.counts[group])}
    </span>`)}
    <span class="faint">Click to zoom in</span>`;
}
