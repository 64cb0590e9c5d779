// What happened when: a lane for each agent, as far back as events are kept, and live.

import { batch, computed, effect, html, loadStyle, signal, useEffect } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { plural, showDuration } from "../lib/format.js";
import { afterQuiet } from "../lib/frames.js";
import { addShortcuts } from "../lib/keys.js";
import { change, link, select, selection } from "../lib/router.js";
import { agents } from "../lib/store.js";
import { orSay } from "../lib/toasts.js";
import { Button } from "../parts/button.js";
import { Empty, Failed, Loading } from "../parts/empty.js";
import { Icon } from "../parts/icon.js";
import { Tabs } from "../parts/tabs.js";
import { groupAt, groups } from "./event-kinds.js";
import { TimelineCanvas } from "./timeline-canvas.js";
import { NONE } from "./timeline-columns.js";
import { TimelineData } from "./timeline-data.js";
import { isShown, makeFilter } from "./timeline-lanes.js";
import { saveImage } from "./timeline-image.js";
import { stateColours } from "./timeline-paint.js";
import { confine, showEdge, zoom } from "./timeline-scale.js";
import { TimelineTable } from "./timeline-table.js";

await loadStyle("css/timeline.css");

const MINUTE = 60_000;
const FIRST_LOOK_MS = 60 * MINUTE;
const SPANS = { "5m": 5 * MINUTE, "1h": 60 * MINUTE, "6h": 360 * MINUTE, "24h": 1_440 * MINUTE };
const TICK_MS = 250;
const AHEAD = 0.03; // of the window, after now

/** What is kept while other views are shown: the events, the part that is looked at, and what is filtered. */
const data = new TimelineData();
const frame = signal({ from: Date.now() - FIRST_LOOK_MS, to: Date.now() });
const isLive = signal(true);
/** How much is looked at while it is live. Of a young relay there is less: the window grows with it. */
const wantedMs = signal(FIRST_LOOK_MS);
const hiddenGroups = signal(new Set());
const wanted = signal("");

const terms = computed(() => wanted.value.toLowerCase().split(/[\s,]+/).filter(Boolean));
const known = computed(() => {
  data.version.value; // names come with events
  const seen = new Set(data.agents.list.filter((name) => agents.value.has(name) || !/[,*#]/.test(name)));
  return [...agents.value.keys(), ...[...seen].filter((name) => !agents.value.has(name)), ""];
});
let lanesBefore = [];
const lanes = computed(() => {
  const matching = known.value.filter((name) => name && terms.value.some((term) => name.toLowerCase().includes(term)));
  const found = matching.length ? matching : known.value.filter((name) => name !== "" || hasNobodys());
  if (found.join("\n") !== lanesBefore.join("\n")) lanesBefore = found; // the same list, as long as nothing has changed
  return lanesBefore;
});
const isTypeShown = computed(() => {
  const typeTerms = terms.value.filter((term) => data.types.list.some((type) => type.includes(term)));
  return (type) => !hiddenGroups.value.has(groups[groupAt(type)].id) && (!typeTerms.length || typeTerms.some((term) => type.includes(term)));
});
const filter = computed(() => (data.version.value, makeFilter(data, lanes.value, isTypeShown.value)));

const hasNobodys = () => data.columns.agent.subarray(0, data.columns.length).includes(NONE);

function look(next, { live = false } = {}) {
  const now = Date.now();
  batch(() => {
    frame.value = confine(next, data.oldest ?? next.from, now);
    isLive.value = live || (isLive.value && frame.value.to >= now);
    if (!live) wantedMs.value = span() / (1 + AHEAD);
  });
}

const span = () => frame.value.to - frame.value.from;
function lookAtLast(ms) {
  const now = Date.now();
  const shown = Math.min(ms, Math.max(now - (data.oldest ?? 0), MINUTE) * 1.02); // the first event is not at the very edge
  wantedMs.value = ms;
  look({ from: now - shown, to: now + shown * AHEAD }, { live: true });
}
const zoomBy = (factor) => (isLive.value ? lookAtLast((span() * factor) / (1 + AHEAD)) : look(zoom(frame.value, factor, 0.5)));
const panBy = (share) => look({ from: frame.value.from + span() * share, to: frame.value.to + span() * share });

/** The selected event's neighbour among those that are shown. */
function step(by) {
  const { columns } = data;
  const chosen = selection.value?.kind === "event" ? columns.placeOfSeq(Number(selection.value.id)) : -1;
  let at = chosen < 0 ? columns.placeOf(by > 0 ? frame.value.from : frame.value.to) - (by > 0 ? 1 : 0) : chosen;
  do at += by; while (at >= 0 && at < columns.length && !isShown(filter.value, columns, at));
  if (at < 0 || at >= columns.length) return;
  const ms = columns.ts[at];
  if (ms < frame.value.from || ms > frame.value.to) look({ from: ms - span() / 2, to: ms + span() / 2 });
  select("event", columns.seq[at]);
}

/** Goes to the selected event where it is not seen, as it is after following a link. */
async function lookAtChosen() {
  if (selection.value?.kind !== "event") return;
  const seq = Number(selection.value.id);
  const [event] = (await get("events", { cursor: String(Math.max(0, seq - 1)), limit: 1 })).events;
  if (event?._seq !== seq || (event._ts >= frame.value.from && event._ts <= frame.value.to)) return;
  isLive.value = false;
  look({ from: event._ts - FIRST_LOOK_MS / 12, to: event._ts + FIRST_LOOK_MS / 12 });
}

const KINDS = [{ value: "lanes", label: "Lanes" }, { value: "table", label: "Table" }];
const lookAtAll = () => lookAtLast(Infinity);
const shortcuts = [
  ["+", "Zoom in", () => zoomBy(0.5)], ["=", "Zoom in", () => zoomBy(0.5)], ["-", "Zoom out", () => zoomBy(2)],
  ["ArrowLeft", "Earlier", () => panBy(-0.2)], ["ArrowRight", "Later", () => panBy(0.2)],
  ["0", "Everything", lookAtAll], ["l", "Follow live", () => lookAtLast(span())],
  ["n", "Next event", () => step(1)], ["p", "Previous event", () => step(-1)],
].map((shortcut) => [...shortcut, { group: "Timeline" }]);

export default function Timeline({ route }) {
  const kind = route.query.as === "table" ? "table" : "lanes";
  const choose = (value) => change({ as: value === "table" ? value : null }, { replace: true });
  useFollowing();
  useEffect(() => { orSay(lookAtChosen); }, []);
  useEffect(() => addShortcuts(shortcuts), []);
  return html`<div class="view timeline">
    <header class="view-head"><h1>Timeline</h1><${Where} />
      <div class="tools"><${Tabs} label="Shown as" value=${kind} options=${KINDS} onChange=${choose} /><${ZoomTools} /></div></header>
    <${FilterBar} />
    ${data.error.value ? html`<${Failed} error=${data.error.value} again=${() => data.want(frame.value.from)} />`
      : html`<${Body} isTable=${kind === "table"} />`}
  </div>`;
}

function Body({ isTable }) {
  if (data.version.value === 0) return html`<${Loading} />`;
  if (!data.columns.length && !data.isReading.value) {
    return html`<${Empty} icon="timeline" title="No events yet">
      <p>Messages, work, requests and costs of all agents appear here as they happen.</p>
    <//>`;
  }
  return isTable ? html`<${TimelineTable} data=${data} frame=${frame} filter=${filter} />`
    : html`<${TimelineCanvas} data=${data} frame=${frame} look=${look} lanes=${lanes} filter=${filter} />`;
}

/** Reads what the window shows, and moves it along while it is live. */
function useFollowing() {
  useEffect(() => {
    const read = afterQuiet(120, (from) => data.want(from - span() * 0.2));
    const stop = effect(() => read(frame.value.from));
    const timer = setInterval(() => {
      if (isLive.value && !document.hidden) lookAtLast(wantedMs.value);
    }, TICK_MS);
    return () => {
      stop();
      clearInterval(timer);
    };
  }, []);
}

function Where() {
  const { from, to } = frame.value;
  return html`<span class="faint tabular tl-where" data-from=${Math.round(from)} data-to=${Math.round(to)}>
      ${showEdge(from)} – ${isLive.value ? "now" : showEdge(to)}
      <span class="muted"> · ${showDuration(to - from)}</span></span>
    ${data.isReading.value && html`<span class="spinner" role="status"><span class="sr-only">Reading</span></span>`}
    ${data.isCut.value && html`<span class="faint">only the newest ${plural(data.columns.length, "event")}</span>`}`;
}

function ZoomTools() {
  const current = Object.entries(SPANS).find(([, ms]) => isLive.value && Math.abs(wantedMs.value - ms) < ms * 0.02)?.[0];
  const { from, to } = frame.value;
  const toggleLive = () => {
    if (isLive.value) isLive.value = false;
    else lookAtLast(span());
  };
  return html`<div class="tl-spans" role="group" aria-label="Time">
      ${Object.entries(SPANS).map(([name, ms]) => html`<${Button} kind="quiet" small key=${name} aria-pressed=${current === name}
        onClick=${() => lookAtLast(ms)}>${name}<//>`)}
      <${Button} kind="quiet" small aria-pressed=${isLive.value && wantedMs.value === Infinity} onClick=${lookAtAll}>All<//>
    </div>
    <${Button} kind="quiet" icon="minus" label="Zoom out" keys="-" onClick=${() => zoomBy(2)} />
    <${Button} kind="quiet" icon="plus" label="Zoom in" keys="+" onClick=${() => zoomBy(0.5)} />
    <${Button} small icon=${isLive.value ? "pause" : "play"} class="tl-live" aria-pressed=${isLive.value} onClick=${toggleLive}>Live<//>
    <${Button} kind="quiet" icon="download" label="Save as a picture" onClick=${() => orSay(() => saveImage(frame.value, lanes.value))} />
    <${Button} kind="quiet" icon="clock" label="Replay this time" href=${link("replay", ["time", `${Math.floor(from)}-${Math.ceil(to)}`])} />`;
}

function FilterBar() {
  const toggle = (id) => {
    const next = new Set(hiddenGroups.value);
    if (!next.delete(id)) next.add(id);
    hiddenGroups.value = next;
  };
  return html`<div class="tl-filter">
    <label class="input tl-find"><${Icon} name="search" size=${14} /><span class="sr-only">Filter by agent or type</span>
      <input type="search" placeholder="Agent or type" value=${wanted.value} onInput=${(event) => { wanted.value = event.currentTarget.value; }} />
    </label>
    <div class="tl-chips" role="group" aria-label="Kinds of events">
      ${groups.map(({ id, title, colour }) => html`<button type="button" class="tl-chip" key=${id} aria-pressed=${!hiddenGroups.value.has(id)}
        onClick=${() => toggle(id)}><i style=${{ background: `var(${colour})` }} />${title}</button>`)}
    </div>
    <ul class="tl-states" aria-label="Lines at the top of the lanes">
      ${Object.entries(stateColours).map(([state, colour]) => html`<li key=${state}><i style=${{ background: `var(${colour})` }} />${state}</li>`)}
    </ul>
  </div>`;
}
