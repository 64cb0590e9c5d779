// What kinds of events there are, for pictures and lists of them: groups with a colour each, and a sentence for every event.

import { describeBudget } from "../lib/budgets.js";
import { showDuration, showNumber } from "../lib/format.js";

/** Groups in the order in which they are shown; `colour` is the name of a custom property. */
export const groups = [
  { id: "messages", title: "Messages", icon: "messages", colour: "--series-1" },
  { id: "work", title: "Work", icon: "bolt", colour: "--series-5" },
  { id: "tools", title: "Files and commands", icon: "terminal", colour: "--series-2" },
  { id: "asks", title: "Requests", icon: "bell", colour: "--warn-dot" },
  { id: "agents", title: "Agents", icon: "robot", colour: "--series-6" },
  { id: "costs", title: "Tokens", icon: "coins", colour: "--series-4" },
  { id: "other", title: "Other", icon: "more", colour: "--series-7" },
];

const groupOfFirst = { message: 0, item: 1, file: 2, command: 2, permission: 3, question: 3, session: 4, agent: 4, tokens: 5, budget: 5 };

/** The place of a type's group among `groups`. */
export const groupAt = (type) => groupOfFirst[type.split(".", 1)[0]] ?? groups.length - 1;
export const groupOf = (type) => groups[groupAt(type)];

const words = {
  "session.started": (event) => `started ${event.agent.cli}${event.agent.model ? ` with ${event.agent.model}` : ""}`,
  "session.ended": (event) => `ended: ${event.reason}`,
  "item.started": (event) => `began ${itemWords[event.itemType] ?? event.itemType}`,
  "item.delta": (event) => event.delta.content,
  "item.completed": (event) => (event.duration === null ? "finished" : `finished after ${showDuration(event.duration)}`),
  "permission.requested": (event) => `asks: ${event.command ?? event.filePath ?? event.description}`,
  "permission.resolved": (event) => `${event.resolution} by ${event.resolvedBy}`,
  "question.requested": (event) => `asks: ${event.question}`,
  "question.resolved": (event) => (event.answer ? `answered by ${event.resolvedBy}: ${event.answer}` : "no longer asked"),
  "message.exchanged": (event) => event.body,
  "message.delivered": (event) => `received it after ${showDuration(event.latencyMs)}${event.door ? ` through ${event.door}` : ""}`,
  "agent.spawned": (event) => `was started by ${event.spawnedBy}${event.task ? `: ${event.task}` : ""}`,
  "agent.released": (event) => `was released by ${event.releasedBy}: ${event.reason}`,
  "consensus.proposed": (event) => `proposes: ${event.title}`,
  "consensus.vote": (event) => `votes ${event.vote}${event.reason ? `: ${event.reason}` : ""}`,
  "consensus.resolved": (event) => `${outcomeWords[event.outcome] ?? event.outcome}${event.resolution ? `: ${event.resolution}` : ""}`,
  "pattern.started": (event) => `began ${event.pattern} with ${showNumber(event.total)} tasks (${event.runId})`,
  "pattern.progress": (event) => `${event.done} of ${event.total}: ${event.agent || event.task} ${event.step.replace("_", " ")}${event.error ? `: ${event.error}` : ""}`,
  "pattern.ended": (event) => `${event.outcome} ${event.runId}${event.totalTokens ? ` with ${showNumber(event.totalTokens)} tokens` : ""}`,
  "tokens.used": (event) => `${showNumber(tokensOf(event))} tokens of ${event.model}`,
  "file.operation": (event) => `${event.operation} ${event.filePath}${event.linesChanged ? ` (${event.linesChanged} lines)` : ""}`,
  "command.executed": (event) => event.command,
  "agent.state": (event) => `is ${event.state}${event.waitingFor ? `: ${event.waitingFor}` : ""}`,
  "budget.exceeded": describeBudget,
  "loop.detected": (event) => event.text,
  "access.denied": (event) => `was refused (${event.action} ${event.to}): ${event.rule}`,
  "stream.gap": (event) => `Events before number ${event.oldest} ${gapWords[event.reason] ?? "are no longer kept"}.`,
};

const gapWords = {
  killed: "may be missing: the daemon was killed", unwritten: "are missing: the disk refused them", damaged: "are damaged and cannot be read",
};

const outcomeWords = {
  approved: "the proposal was approved", rejected: "the proposal was rejected", timeout: "the proposal was not decided in time",
  withdrawn: "the proposal was withdrawn",
};

const itemWords = {
  message: "an answer", tool_call: "a tool call", thinking: "to think", plan: "a plan", search: "a search", test_run: "a test run", build: "a build",
};

const tokensOf = (event) => event.inputTokens + event.outputTokens + (event.cacheReadTokens ?? 0) + (event.cacheWriteTokens ?? 0);

/** What happened, in one line, without who did it. */
export function describe(event) {
  try {
    return words[event.type]?.(event) ?? event.type;
  } catch {
    return event.type; // a later version's event may have other fields
  }
}

/** The one word that tells events of a type apart, as an outline has it. */
export const noteOf = (event) => event.state ?? event.itemType ?? event.riskLevel ?? event.resolution ?? event.operation ?? event.kind ?? "";
