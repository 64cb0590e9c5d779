// Very many events in little memory: a typed array for each field, sorted by number, and words that are kept once.

export const NONE = 65_535;
const FIELDS = {
  seq: Float64Array, ts: Float64Array, agent: Uint16Array, type: Uint16Array, note: Uint16Array, duration: Float64Array, to: Uint16Array,
};

export class Words {
  list = [];
  #places = new Map();

  place(word) {
    if (!word) return NONE;
    if (!this.#places.has(word)) {
      this.#places.set(word, this.list.length);
      this.list.push(word);
    }
    return this.#places.get(word);
  }
}

export class Columns {
  length = 0;

  constructor(room = 1_024) {
    for (const [name, Kind] of Object.entries(FIELDS)) this[name] = new Kind(room);
  }

  push(seq, ts, agent, type, note, duration, to) {
    if (this.length === this.seq.length) this.#grow(this.length * 2);
    const at = this.length++;
    this.seq[at] = seq;
    this.ts[at] = ts;
    this.agent[at] = agent;
    this.type[at] = type;
    this.note[at] = note;
    this.duration[at] = duration;
    this.to[at] = to;
  }

  /** These, and then all of `later`. */
  followedBy(later) {
    const both = new Columns(Math.max(1_024, Math.ceil((this.length + later.length) * 1.2)));
    for (const name of Object.keys(FIELDS)) {
      both[name].set(this[name].subarray(0, this.length));
      both[name].set(later[name].subarray(0, later.length), this.length);
    }
    both.length = this.length + later.length;
    return both;
  }

  /** The place of the first event at or after a moment. */
  placeOf(ms) {
    return lowerBound(this.ts, this.length, ms);
  }

  /** The place of an event by its number; -1 where it is not here. */
  placeOfSeq(seq) {
    const at = lowerBound(this.seq, this.length, seq);
    return this.seq[at] === seq && at < this.length ? at : -1;
  }

  #grow(room) {
    for (const [name, Kind] of Object.entries(FIELDS)) {
      const larger = new Kind(room);
      larger.set(this[name]);
      this[name] = larger;
    }
  }
}

function lowerBound(values, length, wanted) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
