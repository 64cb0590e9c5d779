// The one stream of terminals of this tab. Whoever shows a terminal follows its agent; when the set of agents changes the stream is opened anew,
// and begins with what each of them shows now. A hidden tab follows none.

import { oncePerFrame } from "../lib/frames.js";
import { open, url } from "../lib/api.js";
import { readEvents } from "../lib/sse.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
const SILENCE_MS = 25_000; // there is a heartbeat every 15 seconds

const followers = new Map(); // agent → what is called with ({ type, … })
let current = "";
let abort = null;
let wait = FIRST_WAIT_MS;
let heardAt = 0;

/** Calls `tell({ type: "snapshot" | "output" | "end" | "gone" | "lost", … })`; returns how to stop. */
export function followTerminal(agent, tell) {
  followers.set(agent, tell);
  renew();
  return () => {
    if (followers.get(agent) === tell) followers.delete(agent);
    renew();
  };
}

const renew = oncePerFrame(() => {
  const wanted = document.hidden ? "" : [...followers.keys()].sort().join(",");
  if (wanted === current) return;
  current = wanted;
  wait = FIRST_WAIT_MS;
  abort?.abort();
  if (wanted) run(wanted);
});

document.addEventListener("visibilitychange", renew);
setInterval(() => abort && Date.now() - heardAt > SILENCE_MS && abort.abort(), 5_000);

/** Opens the stream anew: it begins with what each of them shows. */
export const beginAnew = () => abort?.abort();

async function run(agents) {
  while (current === agents) {
    abort = new AbortController();
    heardAt = Date.now();
    try {
      const response = await open(url("terminals/stream", { agents }), { signal: abort.signal });
      await readEvents(response.body, pass, () => { heardAt = Date.now(); wait = FIRST_WAIT_MS; });
    } catch (error) {
      if (error.status === 404) return tellAll({ type: "gone" });
    }
    if (current !== agents) return;
    tellAll({ type: "lost" });
    await new Promise((resolve) => { setTimeout(resolve, wait); });
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  }
}

function pass({ type, data }) {
  const said = JSON.parse(data);
  followers.get(said.agent)?.({ type, ...said });
}

const tellAll = (said) => followers.forEach((tell) => tell(said));
