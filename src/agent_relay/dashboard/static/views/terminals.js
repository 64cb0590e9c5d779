// Terminals: what agents show, live and side by side. Read-only, until the keyboard is taken.

import { classes, html, loadStyle, useEffect, useLayoutEffect, useRef, useState } from "../lib/ui.js";
import { change } from "../lib/router.js";
import { isPhone } from "../lib/screen.js";
import { agents, isReady } from "../lib/store.js";
import { Button } from "../parts/button.js";
import { Empty, Loading } from "../parts/empty.js";
import { Menu } from "../parts/menu.js";
import { Tabs } from "../parts/tabs.js";
import { keyboardOf, releaseKeyboard } from "./terminals-keyboard.js";

await Promise.all([loadStyle("vendor/xterm/xterm.css"), loadStyle("css/terminals.css")]);
const { Pane } = await import("./terminals-pane.js"); // it measures letters, so the styles must be there

const MOST_AT_FIRST = 4;
const MOST = 16; // as the server allows
const HEAD_PX = 44;
const GAP_PX = 12;
const SMALL_PX = 6; // in a grid and at full width more is seen, if in small letters
const GRIDS = { 1: [1, 1], 2: [2, 1], 4: [2, 2], 6: [3, 2] }; // columns and rows
const GRID_TABS = [{ value: "", label: "Auto" }, ...Object.keys(GRIDS).map((value) => ({ value, label: value }))];

/** Those that the relay runs: the others have no terminal to show. */
const isWrapped = (agent) => Boolean(agent.meta?.backend);

export default function Terminals({ route }) {
  const known = [...agents.value.values()].filter(isWrapped);
  const chosen = route.query.agents?.split(",").filter(Boolean) ?? known.filter((agent) => agent.connected).slice(0, MOST_AT_FIRST).map((agent) => agent.name);
  const [large, setLarge] = useState(null);
  const [body, room] = useRoom();
  const grid = !isPhone.value && Object.hasOwn(GRIDS, route.query.grid ?? "") ? route.query.grid : "";
  const isWide = route.query.fit === "width";
  const isAlone = large !== null && chosen.includes(large);
  const shown = isAlone ? [large] : chosen.slice(0, grid ? Number(grid) : MOST);
  const [columns, rows] = grid && !isAlone ? GRIDS[grid] : [null, 1];
  const roomOf = () => {
    if (isWide || room === null) return null;
    if (columns !== null) return Math.floor((room + HEAD_PX - (rows - 1) * GAP_PX) / rows) - HEAD_PX;
    return shown.length === 1 ? room : null;
  };
  const choose = (names) => change({ agents: names.join(",") || null }, { replace: true });
  const toggle = (name) => choose(chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name]);
  const entryOf = ({ name }) => ({ label: name, icon: chosen.includes(name) ? "check" : "minus", run: () => toggle(name) });

  useEffect(() => releaseKeyboard, []);
  const held = keyboardOf.value;
  useEffect(() => { if (held !== null && !shown.includes(held)) releaseKeyboard(); });

  return html`<div class="view terminals"><header class="view-head"><h1>Terminals</h1><div class="tools">
      ${shown.length === 1 && chosen.length > 1 && html`<${Button} small icon="fit" onClick=${() => setLarge(null)}>Show all ${chosen.length}<//>`}
      ${known.length > 0 && html`<span class="wall-tools wide"><${Tabs} label="Terminals at once" value=${grid} options=${GRID_TABS} onChange=${(value) => change({ grid: value || null }, { replace: true })} /></span>
        <${Button} kind="quiet" small icon="fit" label="Fit the width" aria-pressed=${isWide} onClick=${() => change({ fit: isWide ? null : "width" }, { replace: true })} />`}
      ${known.length > 0 && html`<${Menu} label="Choose terminals" icon="filter" small items=${known.map(entryOf)}>Terminals<//>`}
    </div></header>
    <div class="view-body" ref=${body}>
      ${shown.length > 0 && html`<div class=${classes("panes", columns !== null && "grid")} data-grid=${grid || undefined} style=${columns === null ? {} : { "--columns": columns }}>${shown.map((name) => html`<${Pane} key=${name} name=${name}
        agent=${agents.value.get(name)} room=${roomOf()} smallest=${grid || isWide ? SMALL_PX : undefined} isLarge=${large === name}
        onLarge=${() => setLarge(large === name ? null : name)} onClose=${() => toggle(name)} />`)}</div>`}
      ${!shown.length && (isReady.value ? html`<${Nothing} known=${known} />` : html`<${Loading} />`)}
    </div></div>`;
}

function Nothing({ known }) {
  if (known.length) return html`<${Empty} icon="terminal" title="No terminal selected"><p>Choose some above.</p><//>`;
  return html`<${Empty} icon="terminal" title="No agents with a terminal">
    <p>Start one with <code>agent-relay -n Alice claude</code>, or with the + next to Agents.</p><//>`;
}

/** How high the body of the view is: one terminal alone is made to fit into it. */
function useRoom() {
  const body = useRef(null);
  const [room, setRoom] = useState(null);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([entry]) => setRoom(Math.floor(entry.contentRect.height) - HEAD_PX));
    watch.observe(body.current);
    return () => watch.disconnect();
  }, []);
  return [body, room];
}
