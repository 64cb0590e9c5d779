// One agent, whole: its terminal, what it asks, its conversation, what it did and cost, and how messages reach it. On wide screens the
// conversation is beside the rest.

import { html, loadStyle, useCallback, useEffect, useMemo, useRef } from "../lib/ui.js";
import { decisions, wordingOf } from "../lib/decisions.js";
import { putOff } from "../lib/inbox.js";
import { link } from "../lib/router.js";
import { useSettled } from "../lib/settling.js";
import { Slot } from "../lib/slots.js";
import { agents, isReady, permissions, questions } from "../lib/store.js";
import { reveal } from "../lib/visible-text.js";
import { Avatar } from "../parts/avatar.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { Empty, Failed, Loading } from "../parts/empty.js";
import { VirtualList } from "../parts/virtual-list.js";
import { Composer } from "../conversations/composer.js";
import { answer, draftOf } from "../conversations/drafts.js";
import { Feed } from "../conversations/feed.js";
import { MessageRow } from "../conversations/message-row.js";
import { useMarking } from "../conversations/new-messages.js";
import { placeOf } from "../conversations/place.js";
import { activityOf } from "../shell/activity.js";
import { dotOf, isPaused, showState } from "../shell/agent-list.js";
import { Messages, Runs, Spent } from "../shell/agent-details.js";
import { CostOverTime, WayIn, WhatItDid } from "./agent-work.js";
import { PermissionCard } from "./inbox-permission.js";
import { QuestionCard } from "./inbox-question.js";

await Promise.all(["vendor/xterm/xterm.css", "css/terminals.css", "css/inbox.css", "css/agent.css"].map(loadStyle));
const { Screen } = await import("./terminals-screen.js"); // it measures letters, so the styles must be there

const TERMINAL_PX = 380;
const SMALL_PX = 8;
const NO_WORDS = [];
const nothing = () => {};

export default function AgentPage({ route }) {
  const [name = ""] = route.path;
  const agent = agents.value.get(name);
  if (!agent && !isReady.value) return html`<${Loading} />`;
  if (!agent) return html`<div class="view"><${Empty} icon="robot" title="No such agent"><p>This relay knows no agent ${reveal(name)}.</p><//></div>`;
  const dot = dotOf(agent);
  const { words, ago } = activityOf(agent, dot);
  return html`<div class="view agent-page" key=${name}>
    <header class="view-head"><${Avatar} name=${name} state=${dot} size=${26} /><h1 class="clip">${name}</h1>
      <${Badge} tone=${isPaused(agent) ? "warn" : "neutral"}>${showState(agent)}<//><span class="faint clip agent-doing">${words}${ago && ` · ${ago}`}</span>
      <div class="tools agent-tools"><${Slot} place="agent-actions" agent=${agent} /></div></header>
    <div class="agent-columns">
      <${Talk} name=${name} />
      <div class="agent-side scroll" tabindex="-1">
        <${Asked} name=${name} />
        <${Notes} agent=${agent} />
        ${agent.meta?.backend && html`<section class="pane" aria-label=${`Terminal of ${name}`}><header><strong class="grow">Terminal</strong>
          <${Button} small icon="fit" href=${link("terminals", [], { agents: name })}>Open<//></header>
          <${Screen} agent=${name} room=${TERMINAL_PX} smallest=${SMALL_PX} onTitle=${nothing} /></section>`}
        <${WhatItDid} name=${name} /><${CostOverTime} name=${name} />
        <${WayIn} agent=${agent} /><div class="card agent-facts details-like"><${Runs} agent=${agent} /><${Messages} agent=${agent} /><${Spent} agent=${agent} /></div>
      </div>
    </div>
  </div>`;
}

/** What it waits for, and why its messages do. */
function Notes({ agent }) {
  return html`${agent.waitingFor && html`<p class="note warn">Waiting for: ${reveal(agent.waitingFor)}</p>`}
    ${agent.hold && html`<p class="note hold" data-hold=${agent.hold.reason}>Messages wait: ${reveal(agent.hold.line)}</p>`}`;
}

/** Its open requests, to be answered here. */
function Asked({ name }) {
  const open = [...permissions.value.values(), ...questions.value.values()].filter((about) => about.agentName === name);
  const isSettled = useSettled(open.map(wordingOf).join("\n"));
  return open.map((about) => {
    const id = about.requestId ?? about.questionId;
    return html`<${about.requestId ? PermissionCard : QuestionCard} key=${id} about=${about} isCurrent=${false} isSettled=${isSettled}
      pending=${decisions.value.get(id) ?? null} onChoose=${nothing} onLater=${(until) => putOff({ id }, until)} />`;
  });
}

function Talk({ name }) {
  const place = useMemo(() => placeOf({ path: ["agent", name], query: {} }), [name]);
  const feed = useMemo(() => new Feed(place), [place]);
  const list = useRef(null);
  useEffect(() => {
    feed.toNewest();
    return () => feed.close();
  }, [feed]);
  useMarking(place, feed, true, null);
  const reply = useCallback((message) => answer(draftOf(place), message), [place]);
  const render = useCallback((message, before) => html`<${MessageRow} message=${message} before=${before} words=${NO_WORDS} place=${place} news=${null} onReply=${reply} />`, [place, reply]);
  const items = feed.items.value;
  return html`<section class="conversation-view agent-talk" aria-label=${`Conversation with ${name}`}>
    <div class="messages">${feed.error.value && !items.length ? html`<${Failed} error=${feed.error.value} again=${() => feed.toNewest()} />`
      : !items.length ? (feed.isReading.value ? html`<${Loading} />` : html`<${Empty} icon="messages" title="No messages yet"><p>Write the first one below.</p><//>`)
      : html`<${VirtualList} items=${items} keyOf=${(message) => message.messageId} render=${render} stick="bottom" estimate=${72} label="Messages"
        handle=${list} onNearStart=${() => feed.readOlder()} onNearEnd=${() => feed.readNewer()} class="message-list" />`}</div>
    <${Composer} key=${place.home} place=${place} last=${items.at(-1)} />
  </section>`;
}
