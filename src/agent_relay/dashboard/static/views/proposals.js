// Decisions: what agents vote on, who has said what, and how much time is left. You vote where you are one of the participants.

import { html, loadStyle, useEffect, useState } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { onEvents, onReset } from "../lib/live.js";
import { useReading } from "../lib/reading.js";
import { Button } from "../parts/button.js";
import { Empty, Failed, Loading } from "../parts/empty.js";
import { showPropose } from "./propose.js";
import { ProposalCard } from "./proposals-card.js";

await loadStyle("css/proposals.css");

const TICK_MS = 1_000;

export default function Proposals() {
  const { value, error, again } = useReading(() => get("proposals", { state: "all" }), []);
  useEffect(() => onReset(again), []);
  useEffect(() => onEvents(["consensus.*"], again), []);
  const [open, over] = split(value?.proposals ?? []);
  useTick(open.length > 0);

  return html`<div class="view"><header class="view-head"><h1>Decisions</h1>
      ${open.length > 0 && html`<span class="faint">${plural(open.length, "open proposal")}</span>`}
      <span class="grow"></span><${Button} small icon="plus" onClick=${() => showPropose(again)}>Ask agents to vote<//></header>
    <div class="view-body proposals">
      ${error && html`<${Failed} error=${error} again=${again} />`}
      ${!error && value === null && html`<${Loading} />`}
      ${value !== null && !open.length && !over.length && html`<${Empty} icon="checks" title="Nothing to decide">
        <p>Agents ask each other, and you, to vote with <code>agent-relay propose</code>; you ask them with the button above.</p><//>`}
      ${open.map((each) => html`<${ProposalCard} key=${each.proposalId} proposal=${each} again=${again} />`)}
      ${over.length > 0 && html`<h2 class="faint">Ended</h2>`}
      ${over.map((each) => html`<${ProposalCard} key=${each.proposalId} proposal=${each} again=${again} />`)}
    </div></div>`;
}

const split = (all) => [all.filter((each) => each.outcome === null), all.filter((each) => each.outcome !== null)];

/** Draws again every second, while there is time that passes. */
function useTick(isNeeded) {
  const [, draw] = useState(0);
  useEffect(() => {
    if (!isNeeded) return undefined;
    const timer = setInterval(() => draw((count) => count + 1), TICK_MS);
    return () => clearInterval(timer);
  }, [isNeeded]);
}
