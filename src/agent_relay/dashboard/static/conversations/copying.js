// Copies to the clipboard.

import { link } from "../lib/router.js";
import { orSay, say } from "../lib/toasts.js";
import { pathOf } from "./place.js";

export const copyText = (text) => orSay(async () => {
  await navigator.clipboard.writeText(text);
  say("Copied.", { tone: "success" });
});

/** The place of a message in its conversation. */
export const linkTo = (message) =>
  link("conversations", pathOf(message), { at: message.messageId, select: `message:${message.messageId}` });

export const copyLink = (message) => copyText(new URL(linkTo(message), location.href).href);
