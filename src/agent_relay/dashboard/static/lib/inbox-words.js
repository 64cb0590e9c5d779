// What an item of the inbox says, in one line and in a few: for its card, for notifications, for screen readers.

import { describeBudget, isSpent } from "./budgets.js";
import { plural } from "./format.js";
import { reveal } from "./visible-text.js";

const WORDS = 400; // of a message

/** By kind: { name: the agent, or none; does: what it does; text: more about it }. */
const kinds = {
  permission: ({ agentName, tool, command, description, riskLevel }) => ({
    name: agentName, does: `asks to use ${reveal(tool) || "a tool"}${riskLevel === "critical" ? ", which is critical" : ""}`, text: command ?? description,
  }),
  question: ({ agentName, question }) => ({ name: agentName, does: "asks", text: question }),
  vote: ({ proposedBy, title }) => ({ name: proposedBy, does: "asks for your vote", text: reveal(title) }),
  message: ({ name, last }) => ({ name, does: "wrote to you", text: last.body.slice(0, WORDS) }),
  loop: ({ name, hold }) => ({
    name, does: "is held by the loop guard",
    text: `${reveal(hold.text)}. Its messages wait until you resume it, or until somebody says something new.`,
  }),
  stuck: ({ name, hold }) => ({ name, does: "is stuck", text: `Messages wait: ${reveal(hold.line)}` }),
  crashed: ({ _agentName: name }) => ({
    name, does: "has crashed", text: "Its program ended unexpectedly. Messages to it wait until it is started again.",
  }),
  budget: (event) => ({ name: null, does: isSpent(event) ? "Budget spent" : "Budget nearly spent", text: describeBudget(event) }),
  dead: ({ name, letters }) => ({
    name, does: letters.length === 1 ? "did not get a message" : `did not get ${plural(letters.length, "message")}`,
    text: `${letters[0].from}: ${letters[0].body.slice(0, WORDS)}`,
  }),
};

/** { name, does, text, title }; `title` is both in a sentence without its end. */
export function describeItem({ kind, about }) {
  const said = kinds[kind](about);
  return { ...said, title: said.name ? `${said.name} ${said.does}` : said.does };
}
