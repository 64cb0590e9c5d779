// Recording a terminal as it is shown here: an asciicast, as `agent-relay record` makes it, which the replay plays.

import { signal } from "../lib/ui.js";
import { save } from "../lib/saving.js";

const MOST_CHARACTERS = 20_000_000;
const CLEAR = "\u001b[H\u001b[2J\u001b[3J";

/** The agents whose terminals are being recorded. */
export const recorded = signal(new Map());

export const isRecording = (agent) => recorded.value.has(agent);

/** What it shows now comes as the next snapshot. */
export function startRecording(agent) {
  recorded.value = new Map([...recorded.value, [agent, { header: null, lines: [], size: 0, began: 0 }]]);
}

export function stopRecording(agent) {
  const found = recorded.value.get(agent);
  recorded.value = new Map([...recorded.value].filter(([name]) => name !== agent));
  if (!found?.header) return;
  const name = `${agent}-${new Date(found.began).toISOString().slice(0, 19).replace(/[:T]/g, "-")}.cast`;
  save(name, [JSON.stringify(found.header), ...found.lines.map((line) => JSON.stringify(line))].join("\n") + "\n", "application/x-asciicast");
}

/** Hears what the page hears of a terminal. */
export function note(agent, { type, text, columns, rows }) {
  const found = recorded.value.get(agent);
  if (!found || found.size > MOST_CHARACTERS) return;
  const now = Date.now();
  if (type === "snapshot") {
    if (found.header) found.lines.push([(now - found.began) / 1000, "r", `${columns}x${rows}`]);
    else Object.assign(found, { began: now, header: { version: 2, width: columns, height: rows, timestamp: Math.floor(now / 1000), title: agent } });
  }
  if (!found.header || text === undefined) return; // begins with a snapshot
  found.size += text.length;
  found.lines.push([(now - found.began) / 1000, "o", type === "snapshot" ? CLEAR + text : text]);
}
