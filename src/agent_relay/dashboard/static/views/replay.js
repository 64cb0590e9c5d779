// A past session, or a time of all agents, played again: what was said and done, in order, and the terminal where there is a recording of it.

import { html, loadStyle, useEffect, useMemo, useRef, useState } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { showDuration, showMoment, showNumber } from "../lib/format.js";
import { useReading } from "../lib/reading.js";
import { link } from "../lib/router.js";
import { orSay } from "../lib/toasts.js";
import { Avatar } from "../parts/avatar.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { Empty, Failed, Loading } from "../parts/empty.js";
import { CliIcon } from "../parts/icon.js";
import { moveFocus } from "../parts/menu.js";
import { ReplayBar } from "./replay-bar.js";
import { beginningOf, readCast } from "./replay-cast.js";
import { ReplayFeed } from "./replay-feed.js";
import { Player } from "./replay-player.js";
import { readSteps } from "./replay-steps.js";

await Promise.all([loadStyle("css/conversations.css"), loadStyle("css/replay.css")]);

const HOUR_MS = 3_600_000;
const tones = { running: "ok", starting: "info", ending: "info", ended: "neutral", offline: "neutral" };

export default function Replay({ route }) {
  const [kind, id] = route.path;
  const { value, error, again } = useReading(() => get("sessions"), []);
  if (error) return html`<${Failed} error=${error} again=${again} />`;
  if (!value) return html`<${Loading} />`;
  const { sessions } = value;
  if (kind === "session" && id) return html`<${Past} key=${id} ...${ofSession(id, sessions)} at=${Number(route.query.at) || undefined} />`;
  if (kind === "time" && id) return html`<${Past} key=${id} ...${ofTime(id)} />`;
  return html`<${Sessions} sessions=${sessions} />`;
}

/** What is asked for, and how it is called. Of a session that the daemon has forgotten there are only its own events. */
function ofSession(id, sessions) {
  const found = sessions.find((each) => each.sessionId === id);
  if (!found) return { title: "A past session", note: id, query: { session: id } };
  const query = { agent: found.agentName, since: found.startedAt, until: found.endedAt === null ? null : found.endedAt + 1_000 };
  return { title: found.agentName, note: [found.cli, showMoment(found.startedAt)].filter(Boolean).join(" · "), query };
}

function ofTime(id) {
  const [since, until] = id.split("-").map(Number);
  return { title: "All agents", note: `${showMoment(since)} – ${showMoment(until)}`, query: { since, until } };
}

function Sessions({ sessions }) {
  const sorted = [...sessions].sort((one, other) => other.startedAt - one.startedAt);
  const now = Date.now();
  return html`<div class="view replay">
    <header class="view-head"><h1>Replay</h1><div class="tools">
      <${Button} small icon="play" href=${link("replay", ["time", `${now - HOUR_MS}-${now}`])}>Last hour, all agents<//></div></header>
    <div class="view-body">
      <ul class="rp-sessions" onKeyDown=${moveFocus}>
        ${sorted.map((session) => html`<li key=${session.sessionId}><${SessionRow} session=${session} now=${now} /></li>`)}
      </ul>
      ${!sorted.length && html`<${Empty} icon="clock" title="No sessions yet">
        <p>You can replay every agent's session here, as long as its events are kept.</p>
      <//>`}
    </div>
  </div>`;
}

function SessionRow({ session, now }) {
  const { agentName, cli, status, startedAt, endedAt, task, sessionId } = session;
  return html`<a class="row rp-session" href=${link("replay", ["session", sessionId])}>
    <${Avatar} name=${agentName} size=${32} />
    <span class="grow">
      <span class="line"><strong class="clip">${agentName}</strong>
        ${cli && html`<span class="faint line" style=${{ "--gap": "4px" }}><${CliIcon} cli=${cli} />${cli}</span>`}</span>
      <span class="faint clip rp-task">${task ?? `since ${showMoment(startedAt)}`}</span>
    </span>
    <span class="faint tabular">${showDuration((endedAt ?? now) - startedAt)}</span><${Badge} tone=${tones[status]}>${status}<//>
  </a>`;
}

/** Reads the past, then plays it. */
function Past({ title, note, query, at }) {
  const [read, setRead] = useState({ count: 0, past: null, error: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    readSteps(query, { signal: abort.signal, onProgress: (count) => setRead((now) => ({ ...now, count })) }).then(
      (past) => setRead((now) => ({ ...now, past, error: null })),
      (error) => error.name !== "AbortError" && setRead((now) => ({ ...now, error })),
    );
    return () => abort.abort();
  }, [turn]);
  const { past, error, count } = read;
  if (past?.steps.length) return html`<${Stage} title=${title} note=${note} past=${past} at=${at} />`;
  return html`<div class="view replay"><${Head} title=${title} note=${note} />
    ${error ? html`<${Failed} error=${error} again=${() => setTurn(turn + 1)} />`
      : past ? html`<${Empty} icon="clock" title="No events available"><p>Events are only kept for some days, and none are left here.</p><//>`
      : html`<${Loading} label=${`Loading, ${count} events so far`} />`}
  </div>`;
}

function Head({ title, note, children }) {
  return html`<header class="view-head">
    <${Button} kind="quiet" icon="chevron" class="rp-back" label="All sessions" href=${link("replay")} />
    <h1 class="clip">${title}</h1><span class="faint clip rp-about">${note}</span>
    <div class="tools">${children}</div>
  </header>`;
}

function Stage({ title, note, past, at }) {
  const player = useMemo(() => new Player(past, at), [past]);
  const [cast, setCast] = useState(null);
  useEffect(() => () => player.pause(), [player]);
  return html`<div class="view replay">
    <${Head} title=${title} note=${note}>
      ${past.isCut && html`<${Badge} tone="warn">the first ${showNumber(past.steps.length)} steps<//>`}
      <${CastButton} cast=${cast} onCast=${setCast} />
    <//>
    <div class=${cast ? "rp-stage both" : "rp-stage"}>
      <${ReplayFeed} player=${player} />${cast && html`<${Recorded} cast=${cast} player=${player} />`}
    </div>
    <${ReplayBar} player=${player} usages=${past.usages} />
  </div>`;
}

const Recorded = ({ cast, player }) => html`<${cast.Screen} cast=${cast} ms=${player.at.value - beginningOf(cast, player)} />`;

/** Recordings are files that a person made with `agent-relay record`; they are read here and sent nowhere. */
function CastButton({ cast, onCast }) {
  const input = useRef(null);
  if (cast) return html`<${Button} small icon="x" onClick=${() => onCast(null)}>Close terminal<//>`;
  const open = (event) => orSay(async () => {
    const [file] = event.currentTarget.files;
    if (!file) return;
    const { CastScreen } = await import("./replay-screen.js"); // the terminal library is large, and few need it here
    onCast({ ...readCast(await file.text()), Screen: CastScreen });
  });
  const choose = () => input.current.click();
  return html`<${Button} small icon="terminal" tip="A file from agent-relay record, played in sync" onClick=${choose}>Add a recording<//>
    <input ref=${input} type="file" accept=".cast" class="sr-only" tabindex="-1" aria-label="A recorded terminal" onChange=${open} />`;
}
