// The controls of a replay: play, speed, and a scrubber over a picture of how much happened when.

import { html, useEffect, useMemo } from "../lib/ui.js";
import { showCount, showDuration } from "../lib/format.js";
import { addShortcuts } from "../lib/keys.js";
import { Button } from "../parts/button.js";
import { groups } from "./event-kinds.js";
import { SPEEDS } from "./replay-player.js";
import { showAt } from "./timeline-scale.js";

const BARS = 120;
const TALL = 24;

export function ReplayBar({ player, usages }) {
  useEffect(() => addShortcuts([
    [" ", "Play or pause", () => player.toggle()], [">", "Faster", () => player.faster(1)], ["<", "Slower", () => player.faster(-1)],
    ["ArrowRight", "Next step", () => player.step(1)], ["ArrowLeft", "Previous step", () => player.step(-1)],
    ["Home", "Go to the beginning", () => player.seek(player.from)], ["End", "Go to the end", () => player.seek(player.to)],
  ].map((shortcut) => [...shortcut, { group: "Replay" }])), [player]);
  const at = player.at.value;
  const playing = player.isPlaying.value;
  return html`<footer class="rp-bar">
    <div class="rp-buttons">
      <${Button} kind="quiet" icon="chevron" class="rp-back" label="Previous step" keys="←" onClick=${() => player.step(-1)} />
      <${Button} kind="primary" icon=${playing ? "pause" : "play"} label=${playing ? "Pause" : "Play"} keys="Space"
        onClick=${() => player.toggle()} />
      <${Button} kind="quiet" icon="chevron" class="rp-on" label="Next step" keys="→" onClick=${() => player.step(1)} />
    </div>
    <div class="rp-scrub"><${Density} player=${player} />
      <input type="range" min=${player.from} max=${player.to} step="1" value=${at} aria-label="Replay position"
        aria-valuetext=${`${showAt(at, 60_000)}, step ${player.count.value} of ${player.steps.length}`}
        onInput=${(event) => player.seek(Number(event.currentTarget.value))} />
      <div class="rp-times tabular faint"><span>${showAt(at, 60_000)}</span>
        <span>${player.count.value} of ${player.steps.length} steps
          <span class="rp-tokens"> · ${showCount(tokensUntil(usages, at))} tokens</span></span>
        <span>${showDuration(at - player.from)} of ${showDuration(player.to - player.from)}</span></div></div>
    <${Options} player=${player} />
  </footer>`;
}

function Options({ player }) {
  const setSpeed = (event) => { player.speed.value = Number(event.currentTarget.value); };
  const setSkipping = (event) => { player.skipsPauses.value = event.currentTarget.checked; };
  return html`<div class="rp-options">
    <label class="sr-only" for="replay-speed">Speed</label>
    <select id="replay-speed" class="input" value=${player.speed.value} onChange=${setSpeed}>
      ${SPEEDS.map((speed) => html`<option key=${speed} value=${speed}>${speed}×</option>`)}
    </select>
    <label class="check"><input type="checkbox" checked=${player.skipsPauses.value} onChange=${setSkipping} />Skip pauses</label>
  </div>`;
}

/** How much happened when, as bars behind the scrubber. */
function Density({ player }) {
  const bars = useMemo(() => {
    const sums = Array.from({ length: BARS }, () => new Array(groups.length).fill(0));
    const span = Math.max(1, player.to - player.from);
    for (const { ts, group } of player.steps) {
      sums[Math.min(BARS - 1, Math.floor(((ts - player.from) / span) * BARS))][groups.indexOf(group)]++;
    }
    return sums;
  }, [player]);
  const most = Math.max(1, ...bars.map((each) => each.reduce((sum, count) => sum + count, 0)));
  return html`<svg class="rp-density" viewBox=${`0 0 ${BARS} ${TALL}`} preserveAspectRatio="none" aria-hidden="true">
    ${bars.map((counts, bar) => html`<${Bar} key=${bar} counts=${counts} x=${bar} most=${most} />`)}
  </svg>`;
}

function Bar({ counts, x, most }) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const tall = Math.max(2, TALL * Math.sqrt(total / most));
  let y = TALL;
  return counts.map((count, group) => {
    if (!count) return null;
    const part = (tall * count) / total;
    y -= part;
    return html`<rect key=${group} x=${x + 0.12} y=${y} width="0.76" height=${part} fill=${`var(${groups[group].colour})`} />`;
  });
}

const tokensUntil = (usages, at) => usages.reduce((sum, each) => (each._ts <= at ? sum + each.inputTokens + each.outputTokens : sum), 0);
