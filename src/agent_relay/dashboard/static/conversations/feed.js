// The messages of one conversation, oldest first: a window of the history that grows by cursor to both sides, and live at its newest end.

import { batch, effect, signal, untracked } from "../lib/ui.js";
import { get, part } from "../lib/api.js";
import { atMostEvery } from "../lib/frames.js";
import { connection, onEvents, onReset } from "../lib/live.js";
import { readPage } from "./pages.js";
import { fromEvent, isLater, normalise } from "./receipts.js";

const PAGE = 60;
const NEWEST = 20; // of those what became of them is looked after
const MOST = 2_400; // in memory; what is scrolled far away from is read again when it is wanted
const RECEIPTS_MS = 5_000; // deliveries are told by the stream; that one was read is not

export class Feed {
  constructor(place) {
    this.place = place;
    this.items = signal([]);
    this.isReading = signal(true);
    this.error = signal(null);
    this.hasOlder = signal(false);
    this.hasNewer = signal(false);
    /** How many came while the newest end was not in the window. */
    this.unseen = signal(0);
    this.older = null; // the cursor
    this.isBusy = false;
    this.turn = 0;
    this.early = []; // what came while something was read
    this.isBlind = false; // it went live meanwhile
    const readReceipts = atMostEvery(RECEIPTS_MS, () => document.hidden || this.refresh(NEWEST));
    this.stops = [
      onEvents(["message.exchanged"], (events) => this.take(events)),
      onEvents(["message.delivered"], (events) => { this.mark(events); readReceipts(); }),
      onReset(() => this.toNewest()),
      effect(() => { if (connection.value.state === "live") untracked(() => this.comeLive()); }),
    ];
  }

  close() {
    this.turn += 1;
    this.stops.forEach((stop) => stop());
  }

  /** The first reading may have been before the stream began, so it is asked what was said in between. */
  comeLive() {
    if (this.error.value) this.toNewest();
    else if (this.isReading.value) this.isBlind = true;
    else this.refresh();
  }

  /** The newest messages. */
  async toNewest() {
    await this.replace(async () => {
      const page = await this.ask({});
      return { items: page.messages.reverse(), older: page.next_cursor, hasNewer: false };
    });
  }

  /** A message, and what was said before and after it. */
  async around(id) {
    if (this.items.value.some((each) => each.messageId === id)) return;
    await this.replace(async () => {
      const itself = get(`messages/${part(id)}`);
      const [before, after] = await Promise.all([this.ask({ cursor: id }), this.ask({ cursor: id, order: "oldest" })]);
      const items = [...before.messages.reverse(), await itself, ...after.messages];
      return { items, older: before.next_cursor, hasNewer: after.next_cursor !== null };
    });
  }

  async replace(read) {
    const turn = ++this.turn;
    batch(() => {
      this.isReading.value = true;
      this.error.value = null;
    });
    try {
      const { items, older, hasNewer } = await read();
      if (turn !== this.turn) return;
      batch(() => {
        this.items.value = items.map(normalise);
        this.older = older;
        this.hasOlder.value = older !== null;
        this.hasNewer.value = hasNewer;
        this.unseen.value = 0;
      });
    } catch (error) {
      if (turn === this.turn) this.error.value = error;
    } finally {
      if (turn === this.turn) this.endReading();
    }
  }

  endReading() {
    const { early } = this;
    this.early = [];
    this.isReading.value = false;
    this.take(early);
    if (this.isBlind) this.refresh();
    this.isBlind = false;
  }

  readOlder() {
    if (this.older === null) return;
    this.grow({ cursor: this.older }, (page, now) => {
      this.older = page.next_cursor;
      this.hasOlder.value = page.next_cursor !== null;
      const items = [...page.messages.reverse().map(normalise), ...now];
      if (items.length > MOST) this.hasNewer.value = true;
      return items.slice(0, MOST);
    });
  }

  readNewer() {
    if (!this.hasNewer.value || !this.items.value.length) return;
    this.grow({ cursor: this.items.value.at(-1).messageId, order: "oldest" }, (page, now) => {
      this.hasNewer.value = page.next_cursor !== null;
      const items = [...now, ...page.messages.map(normalise)];
      if (items.length > MOST) {
        this.older = items.at(-MOST).messageId;
        this.hasOlder.value = true;
      }
      return items.slice(-MOST);
    });
  }

  async grow(query, join) {
    if (this.isBusy || this.isReading.value) return;
    this.isBusy = true;
    const { turn } = this;
    try {
      const page = await this.ask(query);
      if (turn === this.turn) batch(() => { this.items.value = unique(join(page, this.items.value)); });
    } catch (error) {
      if (error.status > 0) this.error.value = error; // else the stream shows that nobody answers, and it is tried again
    } finally {
      this.isBusy = false;
    }
  }

  ask(query) {
    return readPage(this.place, { limit: PAGE, ...query });
  }

  /** New messages, from the stream. */
  take(events) {
    if (this.isReading.value) {
      this.early.push(...events);
      return;
    }
    const known = new Set(this.items.value.slice(-PAGE * 4).map((each) => each.messageId));
    const fresh = events.map(fromEvent).filter((each) => this.place.matches(each) && !known.has(each.messageId));
    if (!fresh.length) return;
    if (this.hasNewer.value) this.unseen.value += fresh.length;
    else this.items.value = [...this.items.value, ...fresh].slice(-MOST);
  }

  /** What the stream says about deliveries. */
  mark(events) {
    const news = Map.groupBy(events, (event) => event.messageId);
    if (!this.items.value.some((each) => news.has(each.messageId))) return;
    this.items.value = this.items.value.map((message) => {
      const said = news.get(message.messageId);
      return said ? said.reduce(withDelivery, message) : message;
    });
  }

  /** Reads the newest messages again: that one was read is not told by the stream. */
  async refresh(limit = PAGE) {
    if (this.hasNewer.value || this.place.search) return;
    const { turn } = this;
    try {
      const { messages } = await this.ask({ limit });
      if (turn !== this.turn || this.hasNewer.value) return;
      const found = new Map(messages.reverse().map((each) => [each.messageId, normalise(each)]));
      const items = this.items.value.map((message) => found.get(message.messageId) ?? message);
      items.forEach(({ messageId }) => found.delete(messageId));
      this.items.value = [...items, ...found.values()];
    } catch {
      // The next delivery asks again.
    }
  }
}

function withDelivery(message, { to, door, evidence, _ts: at }) {
  const others = message.recipients.filter((each) => each.name !== to);
  const before = message.recipients.find((each) => each.name === to);
  if (before && !isLater("delivered", before.stage)) return message;
  return { ...message, recipients: [...others, { name: to, stage: "delivered", door, evidence, at }] };
}

function unique(items) {
  const seen = new Set();
  return items.filter(({ messageId }) => !seen.has(messageId) && seen.add(messageId));
}
