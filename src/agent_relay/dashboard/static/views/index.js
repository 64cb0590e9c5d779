// The views of the page. To add one: a file here whose default export is a component, and a line below.
//
// `key` is pressed after "g". `badge` is a function of signals; null shows none. `phone` puts it into the bar at the bottom of a phone.
// `extras` are files that add to slots of the page and are loaded after the first paint.

import { inboxCount } from "../lib/inbox.js";
import { status, votesAsked } from "../lib/store.js";

export const views = [
  { id: "inbox", title: "Inbox", icon: "bell", key: "i", phone: true, badge: () => inboxCount.value, badgeTone: "warn", load: () => import("./inbox.js") },
  { id: "conversations", title: "Conversations", icon: "messages", key: "c", phone: true, load: () => import("./conversations.js") },
  { id: "decisions", title: "Decisions", icon: "checks", key: "d", badge: () => votesAsked.value, load: () => import("./proposals.js") },
  { id: "terminals", title: "Terminals", icon: "terminal", key: "x", phone: true, load: () => import("./terminals.js") },
  { id: "timeline", title: "Timeline", icon: "timeline", key: "t", load: () => import("./timeline.js") },
  { id: "replay", title: "Replay", icon: "clock", key: "r", load: () => import("./replay.js") },
  { id: "graph", title: "Graph", icon: "graph", key: "g", load: () => import("./graph.js") },
  { id: "costs", title: "Costs", icon: "coins", key: "m", load: () => import("./costs.js") },
  { id: "dead-letters", title: "Dead letters", icon: "archive", key: "l", badge: () => status.value?.deadLetters, load: () => import("./dead-letters.js") },
];

/** What is reached from other views alone. */
export const pages = [{ id: "agent", title: "Agent", icon: "robot", load: () => import("./agent.js") }];

export const extras = [
  () => import("./control.js"),
  () => import("./inbox-alerts.js"),
  () => import("./event-details.js"),
  () => import("../shell/palette.js"),
];
