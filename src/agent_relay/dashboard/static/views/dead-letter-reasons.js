// Why a message became a dead letter, in words: what its last steps say, and how long it was waited for.

import { showDuration } from "../lib/format.js";

const REASONS = {
  DELIVERY_TIMEOUT: "Not acknowledged in time", QUEUE_FULL: "The queue was full", REJECTED: "Refused", AGENT_OFFLINE: "The agent was offline",
  AGENT_NOT_FOUND: "The agent is gone", PAYLOAD_TOO_LARGE: "Too large", PERMISSION_DENIED: "Not allowed",
};

export const reasonOf = (code) => REASONS[code] ?? code.replaceAll("_", " ").toLowerCase();

/** A sentence; `steps` are those of the message, or none while they are not known. */
export function whyItDied({ ts, dead }, steps) {
  const own = steps.filter((step) => step.to === dead.to);
  const waited = showDuration(Math.max(0, dead.at - ts));
  const wait = own.findLast((step) => step.event === "waits");
  const refusal = own.findLast((step) => step.event === "rejected");
  if (refusal) return `${dead.to} refused it: ${reasonOf(refusal.detail || dead.code)}.`;
  if (dead.code !== "DELIVERY_TIMEOUT") return `${reasonOf(dead.code)}, after ${waited}.`;
  if (wait) return `It waited ${waited}: ${wait.detail}.`;
  if (own.some((step) => step.event === "handed")) return `It was handed to ${dead.to}, who did not acknowledge it within ${waited}.`;
  if (own.some((step) => step.event === "sent" || step.event === "received")) return `It reached ${dead.to}, who did not acknowledge it within ${waited}.`;
  return steps.length ? `${dead.to} was not there to get it within ${waited}.` : `It expired after ${waited}.`;
}
