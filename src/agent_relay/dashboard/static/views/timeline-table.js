// The events of the timeline as rows of text: for screen readers, for exact times, and to go through them one by one.

import { html, useMemo } from "../lib/ui.js";
import { plural, showDuration } from "../lib/format.js";
import { select, selection } from "../lib/router.js";
import { Empty } from "../parts/empty.js";
import { VirtualList } from "../parts/virtual-list.js";
import { groupOf } from "./event-kinds.js";
import { isShown } from "./timeline-lanes.js";
import { showAt } from "./timeline-scale.js";

const MOST_ROWS = 10_000;

export function TimelineTable({ data, frame, filter }) {
  const { from, to } = frame.value;
  const version = data.version.value;
  const shown = filter.value;
  const rows = useMemo(() => findRows(data, from, to, shown), [version, from, to, shown]);
  if (!rows.length) {
    return html`<${Empty} icon="timeline" title="No events in this period"><p>Zoom out, or choose other kinds of events.</p><//>`;
  }
  return html`<div class="tl-table" role="region" aria-label="Events">
    <p class="tl-count faint">${plural(rows.length, "event")}${rows.length === MOST_ROWS ? " (the newest)" : ""}, newest first</p>
    <${VirtualList} items=${rows} keyOf=${(at) => data.columns.seq[at]} render=${(at) => html`<${Row} data=${data} at=${at} />`} />
  </div>`;
}

function findRows({ columns }, from, to, filter) {
  const rows = [];
  const first = columns.placeOf(from);
  for (let at = columns.placeOf(to) - 1; at >= first && rows.length < MOST_ROWS; at--) {
    if (isShown(filter, columns, at)) rows.push(at);
  }
  return rows;
}

function Row({ data, at }) {
  const { columns } = data;
  const seq = columns.seq[at];
  const type = data.types.list[columns.type[at]];
  const note = data.notes.list[columns.note[at]];
  const isChosen = selection.value?.kind === "event" && selection.value.id === String(seq);
  return html`<button type="button" class="row tl-row" aria-current=${isChosen ? "true" : undefined} onClick=${() => select("event", seq)}>
    <span class="faint tabular">${showAt(columns.ts[at], 1)}</span>
    <span class="clip tl-who">${data.agents.list[columns.agent[at]] ?? "The relay"}</span>
    <span class="tl-type"><i style=${{ background: `var(${groupOf(type).colour})` }} />${type}</span>
    <span class="muted clip">${note ?? ""}</span>
    <span class="faint tabular">${columns.duration[at] ? showDuration(columns.duration[at]) : ""}</span>
  </button>`;
}
