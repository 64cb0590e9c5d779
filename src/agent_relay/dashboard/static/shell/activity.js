// The second line of an agent: what it does now and for how long, or what it waits for.

import { showAgo, showDay, showTime } from "../lib/format.js";
import { clockTick, doingOf } from "../lib/doings.js";
import { permissions, questions } from "../lib/store.js";
import { reveal } from "../lib/visible-text.js";

const ITEMS = {
  message: "Answering", tool_call: "Using a tool", thinking: "Thinking", plan: "Planning", search: "Searching", test_run: "Running tests", build: "Building",
};
const FILES = { read: "Reading", write: "Writing", edit: "Editing", create: "Creating", delete: "Deleting" };
const FRESH_MS = 45_000; // so long it is "now"
const SHOWN_PARTS = 2; // of a path

/** { words, ago }; `state` is what its dot shows. */
export function activityOf(agent, state) {
  const asked = state === "waiting" ? requestOf(agent.name) : null;
  if (asked) return { words: `Asks: ${reveal(asked.command ?? asked.question ?? asked.filePath ?? asked.tool ?? "").split("\n", 1)[0]}`, ago: ago(asked.requestedAt) };
  if (state === "waiting") return { words: "Waiting for you", ago: ago(agent.stateAt) };
  if (agent.connected && agent.hold?.reason === "loop_guard") return { words: "Held by the loop guard", ago: "" };
  if (state === "paused") return { words: "Paused", ago: "" };
  if (state === "offline") return { words: `Offline since ${since(agent.lastSeenAt)}`, ago: "" };
  if (state === "starting") return { words: "Starting", ago: ago(agent.stateAt) };
  if (state === "idle") return { words: agent.stateAt ? `Idle since ${since(agent.stateAt)}` : "Idle", ago: "" };
  const doing = doingOf(agent);
  return doing ? { words: wordsOf(doing), ago: ago(doing.at) } : { words: "Working", ago: ago(agent.stateAt) };
}

const requestOf = (name) => [...permissions.value.values(), ...questions.value.values()].find((about) => about.agentName === name) ?? null;

function wordsOf({ kind, what, text }) {
  if (kind === "file") return `${FILES[what] ?? what} ${reveal(text.split("/").slice(-SHOWN_PARTS).join("/"))}`;
  if (kind === "command") return `Ran ${reveal(text)}`;
  return ITEMS[what] ?? what.replaceAll("_", " ");
}

const ago = (at) => (at && clockTick.value - at > FRESH_MS ? showAgo(at, clockTick.value) : "");
const since = (at) => (showDay(at) === "Today" ? showTime(at) : `${showDay(at)}, ${showTime(at)}`);
