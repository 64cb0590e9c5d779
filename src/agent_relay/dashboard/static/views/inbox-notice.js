// What is no request: messages to you, votes, agents that are held, stuck or crashed, budgets, dead letters. Each says what it is
// about, leads to where something can be done, and can be done with or put off.

import { classes, html } from "../lib/ui.js";
import { part, post } from "../lib/api.js";
import { isSpent } from "../lib/budgets.js";
import { plural, showAgo, showMoment } from "../lib/format.js";
import { canBeDone } from "../lib/inbox.js";
import { describeItem } from "../lib/inbox-words.js";
import { link } from "../lib/router.js";
import { sayTooSoon } from "../lib/settling.js";
import { readAgents } from "../lib/store.js";
import { orSay, say } from "../lib/toasts.js";
import { Avatar } from "../parts/avatar.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { Icon } from "../parts/icon.js";
import { Tip } from "../parts/tooltip.js";
import { linkTo } from "../conversations/copying.js";
import { oneLine } from "../conversations/threads.js";
import { LaterMenu } from "./inbox-later.js";

const BEFORE_MS = 60_000; // what led to it

/** By kind: { badge: [tone, words], icon: where it is nobody's, actions: [{ label, icon, href, run }] } */
const kinds = {
  message: ({ last, count }) => ({
    badge: count > 1 ? ["accent", plural(count, "message")] : null, actions: [{ label: "Read and answer", icon: "messages", href: linkTo(last) }],
  }),
  vote: () => ({ badge: ["accent", "Vote"], actions: [{ label: "Vote", icon: "checks", href: link("decisions") }] }),
  loop: ({ name }) => ({ badge: ["warn", "Held"], actions: [{ label: "Resume", icon: "play", run: () => resume(name) }, terminalOf(name)] }),
  stuck: ({ name }) => ({ badge: ["warn", "Stuck"], actions: [terminalOf(name)] }),
  crashed: ({ _sessionId: session, _ts: at }) => ({
    badge: ["danger", "Crashed"],
    actions: [{ label: "See what happened", icon: "play", href: link("replay", ["session", session], { at: Math.max(0, at - BEFORE_MS) }) }],
  }),
  budget: (event) => ({
    icon: "coins", badge: isSpent(event) ? ["danger", "Spent"] : ["warn", "Alert"], actions: [{ label: "Costs and budget", icon: "coins", href: link("costs") }],
  }),
  dead: () => ({ badge: ["danger", "Not delivered"], actions: [{ label: "Send again or dismiss", icon: "archive", href: link("dead-letters") }] }),
};

const terminalOf = (name) => ({ label: "Its terminal", icon: "terminal", href: link("terminals", [], { agents: name }) });

const resume = (name) => orSay(async () => {
  await post(`agents/${part(name)}/resume`);
  say(`${name} receives messages again.`, { tone: "success" });
  readAgents();
});

export function NoticeCard({ item, isCurrent, isSettled, onChoose, onDone, onLater }) {
  const { name, does, text, title } = describeItem(item);
  const { icon, badge, actions } = kinds[item.kind](item.about);
  const press = (work) => (isSettled ? work() : sayTooSoon());
  return html`<article class=${classes("card request notice", isCurrent && "current")} tabindex="-1" data-item=${item.id} data-kind=${item.kind}
      onFocusIn=${onChoose} onPointerDown=${onChoose} aria-label=${title}>
    <header>${name ? html`<${Avatar} name=${name} size=${26} />` : html`<span class="sign"><${Icon} name=${icon} /></span>`}
      ${name && html`<strong class="clip">${name}</strong>`}<span class=${name ? "muted clip" : "clip strong"}>${does}</span>
      ${badge && html`<${Badge} tone=${badge[0]}>${badge[1]}<//>`}<span class="grow" />
      ${item.at > 0 && html`<${Tip} text=${showMoment(item.at)}><time class="faint" tabindex="0" datetime=${new Date(item.at).toISOString()}>${showAgo(item.at)}</time><//>`}
    </header>
    <div class="body stack" style=${{ "--gap": "10px" }}>
      <p class="notice-text" dir="auto">${item.kind === "message" || item.kind === "dead" ? oneLine(text) : text}</p>
      <div class="line wrap notice-actions">
        ${actions.map(({ label, icon: sign, href, run }, at) => html`<${Button} key=${label} small icon=${sign} href=${href} data-press=${at ? undefined : "open"}
          onClick=${run && (() => press(run))}>${label}<//>`)}
        <span class="grow" />
        <${LaterMenu} onLater=${(until) => press(() => onLater(until))} />
        ${canBeDone(item) && html`<${Button} small icon="check" data-press="done" aria-disabled=${!isSettled} onClick=${() => press(onDone)}>Done<//>`}
      </div>
    </div>
  </article>`;
}
