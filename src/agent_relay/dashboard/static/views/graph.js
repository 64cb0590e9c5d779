// Who talks to whom: agents and channels as nodes, messages as edges by their number, and a dot for each message on its way.

import { classes, html, loadStyle, signal, useEffect, useMemo, useRef, useSignal, useState } from "../lib/ui.js";
import { plural } from "../lib/format.js";
import { addShortcuts } from "../lib/keys.js";
import { onEvents } from "../lib/live.js";
import { change } from "../lib/router.js";
import { Button } from "../parts/button.js";
import { Empty, Failed, Loading } from "../parts/empty.js";
import { Tabs } from "../parts/tabs.js";
import { edges, error, follow, isRead, membersOf, nodes, read, recipientsOf } from "./graph-data.js";
import { Layout } from "./graph-layout.js";
import { GraphMatrix } from "./graph-matrix.js";
import { usePan } from "./graph-pan.js";
import { sendPulse } from "./graph-pulse.js";
import { Edge, LARGEST, Node } from "./graph-shapes.js";
import { GraphTable } from "./graph-table.js";

await loadStyle("css/graph.css");

const SMALLEST = 9; // radius of a node where there are many, or little room
const NAME_ROOM = 90; // pixels between nodes, below which only the one that is pointed at has its name
const MANY_EDGES = 90; // beyond that they become fainter, the less used ones first
const MARGIN = 60;
const MOST_PULSES = 60;
const MANY_AGENTS = 40; // more than that are a matrix, unless the picture is asked for
const MANY_SILENT = 8; // more than that who said nothing are folded away
const KINDS = [{ value: "graph", label: "Graph" }, { value: "matrix", label: "Matrix" }, { value: "table", label: "Table" }];

const showsSilent = signal(false);

const layout = new Layout(); // kept while other views are shown, so that everybody stays where they were

export default function Graph({ route }) {
  const usual = [...nodes.value.values()].filter((each) => !each.isChannel).length > MANY_AGENTS ? "matrix" : "graph";
  const kind = KINDS.some(({ value }) => value === route.query.as) ? route.query.as : usual;
  const choose = (value) => change({ as: value === usual ? null : value }, { replace: true });
  useEffect(follow, []);
  return html`<div class="view graph">
    <header class="view-head"><h1>Graph</h1><span class="faint gr-sum">${isRead.value && about()}</span>
      <div class="tools"><${Tabs} label="Shown as" value=${kind} options=${KINDS} onChange=${choose} /></div></header>
    <${Body} kind=${kind} />
  </div>`;
}

function about() {
  const all = [...nodes.value.values()];
  const channels = all.filter((each) => each.isChannel).length;
  const pairs = edges.value.filter((each) => each.type === "pair").length;
  return `${plural(all.length - channels, "agent")}, ${plural(channels, "channel")}, ${plural(pairs, "pair")} that talk`;
}

function Body({ kind }) {
  if (error.value && !isRead.value) return html`<${Failed} error=${error.value} again=${read} />`;
  if (!isRead.value) return html`<${Loading} />`;
  if (!nodes.value.size) {
    return html`<${Empty} icon="graph" title="No agents yet"><p>Agents appear when they connect, and lines between them when they talk.</p><//>`;
  }
  if (kind === "table") return html`<${GraphTable} edges=${edges.value} />`;
  return kind === "matrix" ? html`<${GraphMatrix} nodes=${[...nodes.value.values()]} edges=${edges.value} />` : html`<${Picture} />`;
}

function Picture() {
  const box = useRef(null);
  const pulses = useRef(null);
  const near = useSignal(null); // the node that is pointed at
  const { width, height } = useSize(box);
  const { ids, drawn, weightOf, silent } = useArranged();
  const [, redraw] = useState(0);
  const [halfWide, halfTall] = [width / 2 - MARGIN, height / 2 - MARGIN];
  const placeOf = (id) => {
    const place = layout.places.get(id);
    return place && { x: width / 2 + place.x * halfWide, y: height / 2 + place.y * halfTall - 6 };
  };
  const drag = (id, { x, y }) => {
    layout.hold(id, (x - width / 2) / halfWide, (y + 6 - height / 2) / halfTall);
    redraw((turn) => turn + 1);
  };
  const { view, hands, zoomBy, fit } = usePan(box, drag);
  usePulses(pulses, placeOf);
  useEffect(() => addShortcuts([
    ["+", "Zoom in", () => zoomBy(1.3)], ["-", "Zoom out", () => zoomBy(1 / 1.3)], ["0", "Show everything", fit],
  ].map((shortcut) => [...shortcut, { group: "Graph" }])), []);

  const room = Math.sqrt((width * height) / ids.length);
  const radius = Math.min(LARGEST, Math.max(SMALLEST, room / 8));
  const crowd = Math.min(1, Math.sqrt(MANY_EDGES / drawn.length));
  const faintness = (edge) => (crowd < 1 && edge.type === "pair" ? crowd * (0.4 + 0.6 * weightOf(edge)) : 1);
  const isOf = (edge, id) => edge.from === id || edge.to === id;
  const isAway = (id) => near.value !== null && near.value !== id && !drawn.some((edge) => isOf(edge, id) && isOf(edge, near.value));
  return html`<div class="gr-box" ref=${box} ...${hands}>
    <svg width=${width} height=${height} role="group" aria-label="Who talks to whom. The table shows the same as text.">
      ${width > 0 && html`<g transform=${`translate(${view.x} ${view.y}) scale(${view.scale})`} class=${classes(near.value && "has-near")}>
        ${drawn.map((edge) => html`<${Edge} key=${edge.id} edge=${edge} from=${placeOf(edge.from)} to=${placeOf(edge.to)}
          faint=${faintness(edge)} isNear=${isOf(edge, near.value)} />`)}
        <g ref=${pulses} aria-hidden="true" />
        ${ids.map((id) => html`<${Node} key=${id} node=${nodes.value.get(id)} place=${placeOf(id)} radius=${radius} near=${near}
          isNamed=${room * view.scale > NAME_ROOM || near.value === id} isAway=${isAway(id)} />`)}
      </g>`}
    </svg>
    ${silent.length > MANY_SILENT && html`<div class="gr-fold"><${Button} small aria-pressed=${showsSilent.value} onClick=${() => { showsSilent.value = !showsSilent.value; }}>
      ${showsSilent.value ? "Fold" : "Show"} ${plural(silent.length, "agent")} that said nothing<//></div>`}
    <div class="gr-tools">
      <${Button} small icon="plus" label="Zoom in" keys="+" onClick=${() => zoomBy(1.3)} />
      <${Button} small icon="minus" label="Zoom out" keys="-" onClick=${() => zoomBy(1 / 1.3)} />
      <${Button} small icon="fit" label="Show everything" keys="0" onClick=${fit} />
    </div>
  </div>`;
}

/** What is drawn, the busiest edges last and so on top. Nodes get their places when they come. */
function useArranged() {
  const drawn = [...edges.value].sort((one, other) => one.count - other.count);
  const most = Math.max(1, ...drawn.filter((each) => each.type === "pair").map((each) => each.count));
  const weightOf = (edge) => (edge.type === "pair" ? Math.log1p(edge.count) / Math.log1p(most) : 0.15);
  const talking = new Set(drawn.flatMap(({ from, to }) => [from, to]));
  const silent = [...nodes.value.keys()].filter((id) => !talking.has(id));
  const isFolded = silent.length > MANY_SILENT && !showsSilent.value;
  const ids = [...nodes.value.keys()].filter((id) => !isFolded || talking.has(id)).sort();
  useMemo(() => layout.arrange(ids, drawn.map((each) => ({ from: each.from, to: each.to, weight: weightOf(each) }))), [ids.join("\n")]);
  return { ids, drawn, weightOf, silent };
}

function useSize(box) {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    const element = box.current;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return size;
}

/** A dot for each message, from who wrote it to who gets it; through a channel it goes on to those who listen. */
function usePulses(group, placeOf) {
  const places = useRef(placeOf);
  places.current = placeOf;
  useEffect(() => onEvents(["message.exchanged"], (events) => {
    if (document.hidden || !group.current) return;
    const send = (from, to, arrived) => {
      if (group.current && group.current.childElementCount < MOST_PULSES) sendPulse(group.current, places.current(from), places.current(to), arrived);
    };
    for (const event of events.slice(-MOST_PULSES)) {
      for (const to of recipientsOf(event)) {
        const goOn = () => membersOf(to).filter((name) => name !== event.from).forEach((name) => send(to, name));
        send(event.from, to, to.startsWith("#") ? goOn : undefined);
      }
    }
  }), []);
}
