// One proposal: what it is about, the votes, and yours.

import { classes, html, useState } from "../lib/ui.js";
import { part, post, remove } from "../lib/api.js";
import { plural, showAgo, showDuration, showMoment } from "../lib/format.js";
import { isYou } from "../lib/store.js";
import { orSay, say } from "../lib/toasts.js";
import { reveal } from "../lib/visible-text.js";
import { Avatar } from "../parts/avatar.js";
import { Badge } from "../parts/badge.js";
import { Button } from "../parts/button.js";
import { confirm } from "../parts/dialog.js";
import { Tip } from "../parts/tooltip.js";

const OUTCOMES = { approved: ["ok", "Approved"], rejected: ["danger", "Rejected"], timeout: ["warn", "Not decided in time"], withdrawn: ["neutral", "Withdrawn"] };
const VOTES = { approve: ["ok", "approves"], reject: ["danger", "rejects"], abstain: ["neutral", "abstains"] };
const CHOICES = [["approve", "check", "Approve"], ["reject", "x", "Reject"], ["abstain", "minus", "Abstain"]];

export function ProposalCard({ proposal, again }) {
  const { proposalId, title, description, proposedBy, participants, votes, outcome, resolution, resolvedAt, expiresAt } = proposal;
  const isOpen = outcome === null;
  const [tone, word] = isOpen ? ["info", "Open"] : OUTCOMES[outcome];
  const withdraw = async () => {
    const text = "It ends without a decision. Whoever was asked is told.";
    if (!(await confirm({ title: `Withdraw “${reveal(title)}”?`, text, action: "Withdraw", danger: true }))) return;
    await orSay(async () => {
      await remove(`proposals/${part(proposalId)}`);
      again();
    });
  };

  return html`<article class=${classes("card proposal", isOpen && "open")} data-proposal=${proposalId} aria-label=${reveal(title)}>
    <header><${Badge} tone=${tone}>${word}<//><h2 class="grow">${reveal(title)}</h2>
      <${Tip} text=${isOpen ? `Until ${showMoment(expiresAt)}` : showMoment(resolvedAt)}><time class="faint tabular" tabindex="0"
        datetime=${new Date(isOpen ? expiresAt : resolvedAt).toISOString()}>${isOpen ? showLeft(expiresAt) : showAgo(resolvedAt)}</time><//></header>
    <div class="body stack" style=${{ "--gap": "10px" }}>
      <p class="muted">${isYou(proposedBy) ? "You" : proposedBy} proposed it. ${isOpen ? describeRule(proposal) : reveal(resolution)}</p>
      ${description && html`<p class="about">${reveal(description)}</p>`}
      <ul class="votes">${participants.map((name) => html`<${Vote} key=${name} name=${name} cast=${votes[name]} proposal=${proposal} />`)}</ul>
      ${isOpen && html`<div class="line wrap decision">
        ${participants.some(isYou) && html`<${Ballot} proposal=${proposal} again=${again} />`}
        <${Button} kind="quiet" small icon="archive" onClick=${withdraw}>Withdraw<//></div>`}
    </div>
  </article>`;
}

function Vote({ name, cast, proposal }) {
  const [tone, word] = cast ? VOTES[cast.vote] : ["outline", proposal.departed.includes(name) ? "left" : proposal.outcome === null ? "has not voted" : "did not vote"];
  const weight = proposal.weights[name];
  return html`<li data-voter=${name}><${Avatar} name=${name} size=${22} /><strong>${isYou(name) ? "You" : name}</strong>
    ${weight > 1 && html`<${Badge} tone="outline">counts ${weight}<//>`}<${Badge} tone=${tone}>${word}<//>
    ${cast?.heard === "screen" && html`<${Tip} text="Read off its screen, which also shows what the agent did not say."><span class="faint" tabindex="0">screen</span><//>`}
    ${cast?.reason && html`<span class="reason">${reveal(cast.reason)}</span>`}</li>`;
}

function Ballot({ proposal, again }) {
  const mine = Object.entries(proposal.votes).find(([name]) => isYou(name))?.[1];
  const [reason, setReason] = useState("");
  const vote = (choice) => orSay(async () => {
    const after = await post(`proposals/${part(proposal.proposalId)}/vote`, { vote: choice, ...(reason.trim() ? { reason: reason.trim() } : {}) });
    say(after.outcome === null ? "Your vote counts." : `Your vote counts: ${OUTCOMES[after.outcome][1].toLowerCase()}.`, { tone: "success" });
    setReason("");
    again();
  });
  return html`<input class="input grow" aria-label="Reason for your vote" placeholder="Reason, if you like" maxlength="1000" value=${reason}
      onInput=${(event) => setReason(event.currentTarget.value)} />
    ${CHOICES.map(([choice, icon, word]) => html`<${Button} key=${choice} small icon=${icon} kind=${choice === "approve" ? "primary" : "plain"}
      aria-pressed=${mine?.vote === choice} onClick=${() => vote(choice)}>${word}<//>`)}`;
}

const showLeft = (until) => (until > Date.now() ? `${showDuration(until - Date.now())} left` : "ending");

/** The rule, in a sentence. */
function describeRule({ consensusType, quorum, participants, votes }) {
  const said = `${Object.keys(votes).length} of ${plural(participants.length, "participant")} voted.`;
  if (quorum !== null) return `${quorum} must approve. ${said}`;
  if (consensusType === "unanimous") return `All must approve. ${said}`;
  return `More than half ${consensusType === "weighted" ? "of the weight " : ""}must approve. ${said}`;
}
