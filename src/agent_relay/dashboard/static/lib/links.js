// A link that shows one host and leads to another asks first: its text was written by an agent, or by whoever the agent has read.

import { confirm } from "../parts/dialog.js";

const HOST = /(?:^|[\s(<"'@/])((?:[\p{L}\p{N}-]+\.)+[\p{L}]{2,})(?=$|[/:?#\s)>"',.])/gu;
const FILE_ENDS = new Set(["css", "go", "html", "js", "json", "md", "mjs", "py", "rb", "rs", "sh", "sql", "toml", "ts", "txt", "yaml", "yml"]);

/** The hosts that a text names; a file's name is none. */
export function hostsIn(text) {
  return [...text.matchAll(HOST)].map((found) => found[1].toLowerCase()).filter((host) => !FILE_ENDS.has(host.split(".").at(-1)));
}

const isSame = (shown, host) => shown === host || `www.${shown}` === host || shown === `www.${host}`;

/** Whether a link shows a host that it does not lead to. */
export function misleads(text, address) {
  const { protocol, hostname } = new URL(address);
  const host = protocol === "mailto:" ? address.split("@").at(-1).split("?")[0].toLowerCase() : hostname;
  return hostsIn(text).some((shown) => !isSame(shown, host));
}

/** For clicks anywhere in a text: asks before such a link is followed. */
export async function askBeforeLeaving(event) {
  const link = event.target.closest?.("a.outside");
  if (!link || !misleads(link.textContent, link.href)) return;
  event.preventDefault();
  const isWanted = await confirm({
    title: "This link leads somewhere else", text: `It shows “${link.textContent.trim()}”, and leads to ${link.href}`, action: "Open it", danger: true,
  });
  if (isWanted) open(link.href, "_blank", "noopener,noreferrer");
}
