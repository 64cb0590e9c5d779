// A conversation, a thread, what a search found or one message as one HTML file that needs nothing else: with its time zone, and
// without what should not be passed on. It holds no script, and its policy lets none in.

import { html, render, useState } from "../lib/ui.js";
import { plural } from "../lib/format.js";
import { renderMarkdown } from "../lib/markdown.js";
import { selection } from "../lib/router.js";
import { save } from "../lib/saving.js";
import { orSay, say } from "../lib/toasts.js";
import { Button } from "../parts/button.js";
import { Dialog } from "../parts/dialog.js";
import { fileName, readAll } from "./exporting.js";
import { showName, showTo } from "./place.js";
import { redact } from "./redacting.js";

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --faint: #777; }
body { max-width: 46rem; margin: 0 auto; padding: 2rem 1rem 4rem; font: 16px/1.55 system-ui, sans-serif; }
header.top { margin-bottom: 2rem; padding-bottom: 1rem; border-bottom: 1px solid var(--line); }
h1 { margin: 0 0 .3rem; font-size: 1.5rem; }
.faint, time { color: var(--faint); font-size: .85rem; }
article { margin: 0 0 1.4rem; }
article > header { display: flex; gap: .6rem; align-items: baseline; flex-wrap: wrap; }
pre { padding: .8rem; overflow: auto; border: 1px solid var(--line); border-radius: 8px; font-size: .9rem; }
code { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; } th, td { padding: .3rem .6rem; border: 1px solid var(--line); }
blockquote { margin: 0; padding-left: 1rem; border-left: 3px solid var(--line); }
@media (prefers-color-scheme: dark) { body { background: #14161b; color: #e6e8ee; } }`;

/** Offers it in a dialog. */
export function share(place) {
  const here = document.createElement("div");
  document.body.append(here);
  const close = () => {
    render(null, here);
    here.remove();
  };
  const chosen = selection.value?.kind === "message" ? selection.value.id : null;
  render(html`<${ShareDialog} place=${place} chosen=${chosen} onClose=${close} />`, here);
}

function ShareDialog({ place, chosen, onClose }) {
  const [isOne, setOne] = useState(false);
  const [secrets, setSecrets] = useState(true);
  const [words, setWords] = useState("");
  const make = (event) => {
    event.preventDefault();
    orSay(async () => {
      const all = await readAll(place);
      const messages = isOne ? all.filter(({ messageId }) => messageId === chosen) : all;
      const hide = (text) => redact(text, { secrets, words: words.split(",").map((word) => word.trim()) });
      save(`${fileName(place)}.html`, pageOf(place, messages, hide), "text/html");
      onClose();
      say(`${plural(messages.length, "message")} saved.`, { tone: "success" });
    });
  };
  const footer = html`<${Button} onClick=${onClose}>Cancel<//><${Button} kind="primary" icon="download" type="submit" form="share">Save HTML file<//>`;
  return html`<${Dialog} title="Share as one HTML file" width=${480} onClose=${onClose} footer=${footer}>
    <form id="share" class="stack" style=${{ "--gap": "14px" }} onSubmit=${make}>
      <p class="muted">${place.search ? `What was found with “${place.search}”` : place.title}, in the time zone ${zoneOf(Date.now())}. The file opens anywhere and loads nothing.</p>
      ${chosen && html`<label class="check"><input type="checkbox" checked=${isOne} onChange=${(event) => setOne(event.currentTarget.checked)} />Only the selected message</label>`}
      <label class="check"><input type="checkbox" checked=${secrets} onChange=${(event) => setSecrets(event.currentTarget.checked)} />Hide what looks like a key, a password, an address or a home folder</label>
      <div class="field"><label for="share-words">Hide these words, too <span class="faint">(optional, separated by commas)</span></label>
        <input id="share-words" class="input" autocomplete="off" value=${words} onInput=${(event) => setWords(event.currentTarget.value)} /></div>
      <p class="hint">Read the file before you pass it on: what is secret is not always recognised.</p>
    </form><//>`;
}

/** "Europe/Berlin (GMT+1)". */
const zoneOf = (ms) => {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const name = new Intl.DateTimeFormat("en", { timeZoneName: "shortOffset" }).formatToParts(ms).find(({ type }) => type === "timeZoneName")?.value;
  return `${timeZone} (${name})`;
};

export function pageOf(place, messages, hide, now = Date.now()) {
  const clock = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
  const title = escape(hide(place.search ? `${place.title}: ${place.search}` : place.title));
  const rows = messages.map((message) => `<article><header><strong>${escape(hide(showName(message.from)))}</strong><span class="faint">to ${escape(hide(showTo(message)))}${
    message.kind === "message" ? "" : ` · ${escape(message.kind)}`}</span><time datetime="${new Date(message.ts).toISOString()}">${clock.format(message.ts)}</time></header>
<div>${renderMarkdown(hide(message.body))}</div></article>`);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer"><title>${title}</title><style>${STYLE}</style></head>
<body><header class="top"><h1>${title}</h1><p class="faint">${plural(messages.length, "message")} · times in ${escape(zoneOf(now))} · saved ${clock.format(now)}</p></header>
${rows.join("\n")}
</body></html>
`;
}

const escape = (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
