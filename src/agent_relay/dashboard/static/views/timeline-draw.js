// The picture of the timeline: counts what is seen, lets it be painted, and finds what is under the pointer.

import { groups } from "./event-kinds.js";
import { NONE } from "./timeline-columns.js";
import { AXIS, groupShown, isShown, laneAt } from "./timeline-lanes.js";
import { BUCKET, LONGEST_MS, paintArrows, paintAxis, paintChosen, paintGrid, paintMarks, paintStates, paintSums } from "./timeline-paint.js";
import { ticksOf } from "./timeline-scale.js";

const CROWDED = 9; // pixels an event needs to be drawn by itself
const REACH = 9; // pixels around an event in which it is hit
const TICK_GAP = 92;

export class Picture {
  constructor(data) {
    this.data = data;
  }

  /** `scene`: { width, height, ratio, scroll, window, lanes, tall, filter, colours, selected, hover, now }; `tall` is a lane's height. */
  draw(context, scene) {
    this.scene = scene;
    const { width, height, ratio, colours } = scene;
    const ticks = ticksOf(scene.window, width, TICK_GAP);
    this.#count();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = colours.font;
    paintGrid(context, scene, ticks);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, width, height - AXIS);
    context.clip();
    for (const paint of [paintStates, paintArrows, paintMarks, paintSums, paintChosen]) paint(context, scene, this);
    context.restore();
    paintAxis(context, scene, ticks);
  }

  /** What is at a place: null, { index } of an event, or { lane, from, to, counts, total } where events are summed. */
  find(x, y) {
    if (!this.scene || y < AXIS) return null;
    const { lanes, tall, scroll } = this.scene;
    const lane = Math.floor((y - AXIS + scroll) / tall);
    if (lane >= lanes.length) return null;
    return this.crowded[lane] ? this.#findSum(lane, x) : this.#findEvent(lane, x);
  }

  #findEvent(lane, x) {
    const { window, width, filter } = this.scene;
    const { columns } = this.data;
    const perMs = width / (window.to - window.from);
    const ms = window.from + x / perMs;
    let best = null;
    let distance = REACH;
    for (let at = columns.placeOf(ms - REACH / perMs); at < columns.length && columns.ts[at] <= ms + REACH / perMs + LONGEST_MS; at++) {
      if (laneAt(filter, columns.agent[at]) !== lane || groupShown(filter, columns.type[at]) === NONE) continue;
      const start = columns.ts[at] - this.lengthOf(at);
      const away = Math.max((start - ms) * perMs, (ms - columns.ts[at]) * perMs, 1); // inside of a bar counts as near: dots on it can be hit
      if (away > distance) continue;
      best = { index: at };
      distance = away;
    }
    return best;
  }

  #findSum(lane, x) {
    const { window, width } = this.scene;
    const bucket = Math.floor(x / BUCKET);
    const counts = groups.map((_, group) => this.sums[(lane * this.buckets + bucket) * groups.length + group]);
    const total = counts.reduce((sum, count) => sum + count, 0);
    if (!total) return null;
    const perBucket = ((window.to - window.from) / width) * BUCKET;
    return { lane, counts, total, from: window.from + bucket * perBucket, to: window.from + (bucket + 1) * perBucket };
  }

  /** How long it took, in milliseconds; 0 for what only happened. */
  lengthOf(at) {
    const type = this.data.types.list[this.data.columns.type[at]];
    return type === "item.completed" || type === "command.executed" ? Math.min(this.data.columns.duration[at], LONGEST_MS) : 0;
  }

  /** Counts what is seen: lanes with too much of it become bars. */
  #count() {
    const { window, width, lanes, filter } = this.scene;
    const { columns } = this.data;
    this.first = columns.placeOf(window.from);
    this.last = columns.placeOf(window.to);
    const counts = new Uint32Array(lanes.length);
    for (let at = this.first; at < this.last; at++) {
      if (isShown(filter, columns, at)) counts[laneAt(filter, columns.agent[at])]++;
    }
    this.crowded = Array.from(counts, (count) => count > width / CROWDED);
    this.buckets = Math.ceil(width / BUCKET) + 1;
    this.sums = new Uint32Array(lanes.length * this.buckets * groups.length);
    this.most = 1; // events in one bar
    if (this.crowded.includes(true)) this.#sum();
  }

  #sum() {
    const { window, width, lanes, filter } = this.scene;
    const { columns } = this.data;
    const totals = new Uint32Array(lanes.length * this.buckets);
    const perMs = width / (window.to - window.from) / BUCKET;
    for (let at = this.first; at < this.last; at++) {
      const lane = laneAt(filter, columns.agent[at]);
      const group = groupShown(filter, columns.type[at]);
      if (lane === NONE || group === NONE || !this.crowded[lane]) continue;
      const place = lane * this.buckets + Math.floor((columns.ts[at] - window.from) * perMs);
      this.sums[place * groups.length + group]++;
      if (++totals[place] > this.most) this.most = totals[place];
    }
  }
}
