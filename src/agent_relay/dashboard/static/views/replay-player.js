// The clock of a replay: it plays, stops, goes faster, and is put anywhere.

import { computed, signal } from "../lib/ui.js";

export const SPEEDS = [1, 2, 5, 10, 30, 100];
const PAUSE_MS = 2_000; // a longer one is left out, where pauses are skipped
const BEFORE_MS = 700; // so long before the next step it goes on

export class Player {
  isPlaying = signal(false);
  speed = signal(5);
  skipsPauses = signal(true);
  at;
  #frame = 0;
  #before = 0;

  /** `steps` are sorted; `from` and `to` are the moments it is between. It stands at the end, where all can be read; playing begins anew. */
  constructor({ steps, from, to }, at = to) {
    Object.assign(this, { steps, from, to });
    this.at = signal(Math.min(Math.max(at, from), to));
    /** How many steps have happened. */
    this.count = computed(() => countUntil(steps, this.at.value));
  }

  toggle() {
    if (this.isPlaying.value) return this.pause();
    if (this.at.value >= this.to) this.at.value = this.from;
    this.isPlaying.value = true;
    this.#before = performance.now();
    this.#frame = requestAnimationFrame(this.#tick);
    return undefined;
  }

  pause() {
    this.isPlaying.value = false;
    cancelAnimationFrame(this.#frame);
  }

  seek(at) {
    this.at.value = Math.min(Math.max(at, this.from), this.to);
  }

  /** To the step after, or before (-1); those of one moment come together. */
  step(by) {
    const { steps } = this;
    let place = this.count.value - 1;
    const now = steps[place]?.ts;
    do place += by; while (steps[place] && steps[place].ts === now);
    if (steps[place]) this.seek(steps[place].ts);
  }

  faster(by) {
    this.speed.value = SPEEDS[Math.min(Math.max(SPEEDS.indexOf(this.speed.value) + by, 0), SPEEDS.length - 1)];
  }

  #tick = (now) => {
    const passed = Math.min(now - this.#before, 250) * this.speed.value; // after a sleep it goes on, and does not jump
    this.#before = now;
    this.seek(this.#withoutPause(this.at.value + passed));
    if (this.at.value >= this.to) this.pause();
    else this.#frame = requestAnimationFrame(this.#tick);
  };

  #withoutPause(at) {
    const next = this.steps[countUntil(this.steps, at)];
    const wait = (next?.ts ?? this.to) - at;
    return this.skipsPauses.value && wait > PAUSE_MS * this.speed.value ? at + wait - BEFORE_MS * this.speed.value : at;
  }
}

function countUntil(steps, at) {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle].ts <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}
