// The events of the timeline: read by ranges of time as far back as is looked at, then kept up to date by the stream.

import { signal } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { oncePerFrame } from "../lib/frames.js";
import { onEvents, onReset } from "../lib/live.js";
import { noteOf } from "./event-kinds.js";
import { Columns, NONE, Words } from "./timeline-columns.js";

const PAGE = 20_000;
const PIECES = 6; // a longer range is read in pieces, the newest first, and each is shown when it is here
const SHORTEST_PIECE_MS = 60_000;
const MOST = 400_000; // about 16 MB; older ones are not read beyond that

export class TimelineData {
  /** Goes up with every change of what is here. */
  version = signal(0);
  isReading = signal(false);
  error = signal(null);
  /** True where there are more events in what is shown than are held. */
  isCut = signal(false);
  columns = new Columns();
  agents = new Words();
  types = new Words();
  notes = new Words();
  /** When the oldest event that is kept happened. */
  oldest = null;

  #from = null; // everything since then is here
  #wantedFrom = Infinity;
  #waiting = []; // came while something was read
  #turn = 0; // goes up when everything is read anew: what was asked for before is then of no use
  #undo;

  constructor() {
    this.#undo = [onEvents(null, (events) => this.#take(events)), onReset(() => this.#begin())];
  }

  close() {
    this.#undo.forEach((each) => each());
    this.#undo = [];
  }

  /** Reads what is missing since that moment. */
  async want(from) {
    this.#wantedFrom = Math.min(this.#wantedFrom, from);
    if (this.isReading.value || (this.#from !== null && this.#from <= this.#wantedFrom)) return;
    this.isReading.value = true;
    try {
      this.oldest ??= (await get("events", { limit: 1 })).events[0]?._ts ?? Date.now();
      const whole = (this.#from ?? Date.now()) - Math.max(this.#wantedFrom, this.oldest);
      while ((this.#from === null || this.#wantedFrom < this.#from) && this.columns.length <= MOST) {
        await this.#readPiece(Math.max(SHORTEST_PIECE_MS, whole / PIECES));
      }
      this.isCut.value = this.columns.length > MOST;
      this.error.value = null;
    } catch (error) {
      this.error.value = error;
      this.#wantedFrom = this.#from ?? Infinity;
    }
    this.isReading.value = false;
  }

  async #readPiece(longest) {
    const until = this.#from;
    const from = Math.floor(Math.max(this.#wantedFrom, (until ?? Date.now()) - longest));
    const turn = this.#turn;
    const found = await this.#readRange(from, until);
    if (turn !== this.#turn) return;
    this.columns = until === null ? found : found.followedBy(this.columns);
    this.#from = from <= this.oldest ? 0 : from;
    this.#changed();
    this.#take(this.#waiting.splice(0));
  }

  async #readRange(since, until) {
    const found = new Columns();
    let cursor = null;
    do {
      const page = await get("events/outline", { since, until, limit: PAGE, cursor });
      const agents = page.agents.map((name) => this.agents.place(name));
      const types = page.types.map((name) => this.types.place(name));
      const notes = page.notes.map((name) => this.notes.place(name));
      for (const [seq, ts, agent, type, note, duration, to] of page.events) {
        found.push(seq, ts, agents[agent] ?? NONE, types[type] ?? NONE, notes[note] ?? NONE, duration, agents[to] ?? NONE);
      }
      cursor = page.next_cursor;
    } while (cursor !== null);
    return found;
  }

  #take(events) {
    if (this.#from === null) {
      this.#waiting.push(...events);
      return;
    }
    const { columns } = this;
    let newest = columns.length ? columns.seq[columns.length - 1] : 0;
    for (const event of events) {
      if (event._seq <= newest) continue; // it was read already
      newest = event._seq;
      const [agent, type, note, to] = [
        this.agents.place(event._agentName), this.types.place(event.type), this.notes.place(noteOf(event)), this.agents.place(event.to),
      ];
      columns.push(event._seq, event._ts, agent, type, note, event.duration ?? event.latencyMs ?? 0, to);
    }
    if (events.length) this.#changed();
  }

  #begin() {
    this.#turn += 1;
    this.columns = new Columns();
    this.#from = null;
    this.#waiting = [];
    this.want(this.#wantedFrom);
  }

  #changed = oncePerFrame(() => { this.version.value += 1; });
}
