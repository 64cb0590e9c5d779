// A whole conversation as a file, Markdown or JSON, read page by page.

import { plural, showMoment } from "../lib/format.js";
import { save } from "../lib/saving.js";
import { orSay, say, unsay } from "../lib/toasts.js";
import { readPage } from "./pages.js";
import { showTo } from "./place.js";

const PAGE = 500;

export function exportAs(format, place) {
  return orSay(async () => {
    const notice = say("Reading the conversation…", { stay: true });
    try {
      const messages = await readAll(place);
      const [text, type] = format === "json" ? [asJson(place, messages), "application/json"] : [asMarkdown(place, messages), "text/markdown"];
      save(`${fileName(place)}.${format === "json" ? "json" : "md"}`, text, type);
      say(`${plural(messages.length, "message")} exported.`, { tone: "success" });
    } finally {
      unsay(notice);
    }
  });
}

export async function readAll(place) {
  const messages = [];
  let cursor = null;
  do {
    const page = await readPage(place, { limit: PAGE, cursor });
    messages.push(...page.messages);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return messages.reverse();
}

const asJson = (place, messages) => JSON.stringify({ conversation: place.title, search: place.search || undefined, messages }, null, 2);

function asMarkdown(place, messages) {
  const parts = messages.map((message) => {
    const kind = message.kind !== "message" && message.kind;
    const about = [showMoment(message.ts), kind, message.thread && `thread ${message.thread}`].filter(Boolean).join(" · ");
    return `## ${message.from} → ${showTo(message)}\n\n*${about}*\n\n${message.body}\n`;
  });
  return `# ${place.title}\n\n${parts.join("\n")}`;
}

export const fileName = (place) => `conversation-${(place.key || place.type).replace(/[^\p{L}\p{N}_-]+/gu, "-").replace(/^-|-$/g, "")}`;
