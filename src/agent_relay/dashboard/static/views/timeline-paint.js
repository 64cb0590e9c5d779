// The layers of the timeline's picture, each painted by one function of the canvas, the scene (see timeline-draw.js) and what was counted.

import { token } from "../lib/theme.js";
import { groups } from "./event-kinds.js";
import { NONE } from "./timeline-columns.js";
import { AXIS, groupShown, laneAt } from "./timeline-lanes.js";
import { showAt } from "./timeline-scale.js";
import { findStates } from "./timeline-states.js";

export const BUCKET = 5; // pixels of a bar that sums events
export const LONGEST_MS = 900_000; // what took longer is drawn from there on
const STRIP = 3; // the line at the top of a lane that tells the agent's state
const MARK = 4.5;
const SMALL_MARK = 2.5;
const MOST_ARROWS = 250;
const barOffsets = { work: -9, tools: 9 }; // an agent's work above the line of its events, what it ran below

/** The colours of states that are drawn; in the others nothing is done. */
export const stateColours = { working: "--info-dot", waiting: "--warn-dot" };

/** The colours of the theme that is shown. */
export function readColours() {
  const names = ["--surface", "--border", "--border-strong", "--text", "--text-3", "--accent", ...Object.values(stateColours)];
  const colours = Object.fromEntries(names.map((name) => [name, token(name)]));
  return { ...colours, groups: groups.map((each) => token(each.colour)), font: `11px ${token("--font")}` };
}

const topOf = ({ tall, scroll }, lane) => AXIS + lane * tall - scroll;
const middleOf = (scene, lane) => topOf(scene, lane) + scene.tall / 2;
const perMsOf = ({ window, width }) => width / (window.to - window.from);

export function paintGrid(context, scene, ticks) {
  const { width, height, lanes, colours } = scene;
  context.strokeStyle = colours["--border"];
  context.lineWidth = 1;
  context.beginPath();
  const end = Math.min(height, topOf(scene, lanes.length));
  for (const { x } of ticks) {
    context.moveTo(Math.round(x) + 0.5, AXIS);
    context.lineTo(Math.round(x) + 0.5, end);
  }
  for (let lane = 0; lane <= lanes.length; lane++) {
    const y = topOf(scene, lane) - 0.5;
    if (y < AXIS || y > height) continue;
    context.moveTo(0, y);
    context.lineTo(width, y);
  }
  context.stroke();
}

export function paintAxis(context, scene, ticks) {
  const { width, colours, hover } = scene;
  context.fillStyle = colours["--surface"];
  context.fillRect(0, 0, width, AXIS - 1);
  drawLine(context, 0, AXIS - 0.5, width, AXIS - 0.5, colours["--border"]);
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const { x, label, isDay } of ticks) {
    context.fillStyle = isDay ? colours["--text"] : colours["--text-3"];
    context.fillText(label, x + 5, AXIS / 2);
  }
  if (hover !== null) paintPointer(context, scene);
}

function paintPointer(context, { width, height, colours, hover, window }) {
  const span = window.to - window.from;
  const label = showAt(window.from + (hover / width) * span, span);
  const wide = context.measureText(label).width + 12;
  const left = Math.min(Math.max(0, hover - wide / 2), width - wide);
  context.fillStyle = colours["--text"];
  context.beginPath();
  context.roundRect(left, 5, wide, 20, 4);
  context.fill();
  context.fillStyle = colours["--surface"];
  context.fillText(label, left + 6, AXIS / 2);
  drawLine(context, Math.round(hover) + 0.5, AXIS, Math.round(hover) + 0.5, height, colours["--border-strong"]);
}

/** What agents were doing, as a line at the top of their lanes and a breath of colour below it. */
export function paintStates(context, scene, { data }) {
  const { window, tall, filter, colours, now } = scene;
  const perMs = perMsOf(scene);
  findStates(data, filter, data.columns.placeOf(window.to), now, (lane, state, since, until) => {
    const colour = stateColours[state];
    if (!colour || until < window.from) return;
    const from = Math.max(0, (since - window.from) * perMs);
    const wide = (Math.min(until, window.to) - window.from) * perMs - from;
    context.fillStyle = colours[colour];
    context.fillRect(from, topOf(scene, lane), wide, STRIP);
    context.globalAlpha = 0.07;
    context.fillRect(from, topOf(scene, lane) + STRIP, wide, tall - STRIP - 1);
    context.globalAlpha = 1;
  });
}

/** Messages as arrows from lane to lane, where there are few enough to follow them. */
export function paintArrows(context, scene, picture) {
  const arrows = findArrows(scene, picture);
  if (arrows.length > MOST_ARROWS) return;
  const [colour] = scene.colours.groups;
  context.fillStyle = colour;
  context.globalAlpha = 0.4;
  for (const [x, from, to] of arrows) {
    const down = to > from ? 1 : -1;
    const tip = middleOf(scene, to) - down * 7;
    drawLine(context, x, middleOf(scene, from), x, tip, colour);
    context.beginPath();
    context.moveTo(x, tip + down * 5);
    context.lineTo(x - 3, tip);
    context.lineTo(x + 3, tip);
    context.fill();
  }
  context.globalAlpha = 1;
}

function findArrows(scene, { data, first, last, crowded }) {
  const { columns } = data;
  const { filter, window } = scene;
  const exchanged = data.types.place("message.exchanged");
  const arrows = [];
  if (groupShown(filter, exchanged) === NONE) return arrows;
  for (let at = first; at < last && arrows.length <= MOST_ARROWS; at++) {
    if (columns.type[at] !== exchanged || columns.to[at] === NONE) continue;
    const from = laneAt(filter, columns.agent[at]);
    const to = laneAt(filter, columns.to[at]);
    if (from === NONE || to === NONE || from === to || crowded[from]) continue;
    arrows.push([(columns.ts[at] - window.from) * perMsOf(scene), from, to]);
  }
  return arrows;
}

/** Events one by one: a dot each, and a bar for what took its time. */
export function paintMarks(context, scene, picture) {
  const { window, width, height, tall, filter, colours } = scene;
  const { data, first, crowded } = picture;
  const { columns } = data;
  const perMs = perMsOf(scene);
  const small = new Set(["item.delta", "item.started", "message.delivered"].map((type) => data.types.place(type)));
  const last = columns.placeOf(window.to + LONGEST_MS); // a bar ends at its event, and may begin before
  for (let at = first; at < last; at++) {
    const lane = laneAt(filter, columns.agent[at]);
    const group = groupShown(filter, columns.type[at]);
    if (lane === NONE || group === NONE || crowded[lane]) continue;
    const y = middleOf(scene, lane);
    const x = (columns.ts[at] - window.from) * perMs;
    const length = picture.lengthOf(at) * perMs;
    if (y < 0 || y > height + tall || x - length > width) continue;
    context.fillStyle = colours.groups[group];
    if (length > MARK * 2) drawBar(context, x, y + barOffsets[groups[group].id], length, colours.groups[group]);
    else if (x <= width + MARK) drawDot(context, x, y, small.has(columns.type[at]) ? SMALL_MARK : MARK, colours["--surface"]);
  }
}

/** Very many events as bars, divided by their groups. */
export function paintSums(context, scene, { crowded, buckets, sums, most }) {
  const { lanes, tall, colours, height } = scene;
  for (let lane = 0; lane < lanes.length; lane++) {
    const base = topOf(scene, lane + 1) - 1;
    if (!crowded[lane] || base < AXIS || base - tall > height) continue;
    for (let bucket = 0; bucket < buckets; bucket++) {
      const place = (lane * buckets + bucket) * groups.length;
      const counts = sums.subarray(place, place + groups.length);
      const total = counts.reduce((sum, count) => sum + count, 0);
      if (!total) continue;
      const high = Math.max(3, (tall - STRIP - 7) * Math.sqrt(total / most));
      let y = base;
      for (let group = 0; group < groups.length; group++) {
        const part = (high * counts[group]) / total;
        context.fillStyle = colours.groups[group];
        context.fillRect(bucket * BUCKET + 0.5, y - part, BUCKET - 1, part);
        y -= part;
      }
    }
  }
}

/** A ring around the event whose details are shown. */
export function paintChosen(context, scene, { data }) {
  const { selected, window, filter, colours, height } = scene;
  const at = selected === null ? -1 : data.columns.placeOfSeq(selected);
  if (at < 0) return;
  const x = (data.columns.ts[at] - window.from) * perMsOf(scene);
  context.globalAlpha = 0.5;
  drawLine(context, x, AXIS, x, height, colours["--accent"]);
  context.globalAlpha = 1;
  const lane = laneAt(filter, data.columns.agent[at]);
  if (lane === NONE) return;
  context.lineWidth = 2;
  context.beginPath();
  context.arc(x, middleOf(scene, lane), MARK + 4, 0, 7);
  context.stroke();
  context.lineWidth = 1;
}

function drawLine(context, x, y, toX, toY, colour) {
  context.strokeStyle = colour;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(toX, toY);
  context.stroke();
}

function drawBar(context, x, y, length, colour) {
  const left = Math.max(-10, x - length);
  context.globalAlpha = 0.28;
  context.beginPath();
  context.roundRect(left, y - 4.5, x - left, 9, 4);
  context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = colour;
  context.stroke();
}

function drawDot(context, x, y, radius, ring) {
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fill();
  if (radius < MARK) return;
  context.strokeStyle = ring;
  context.stroke();
}
