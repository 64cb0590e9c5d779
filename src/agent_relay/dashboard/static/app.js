// Where the page begins: shows the frame, follows the daemon, and loads what can wait.

import "./lib/key.js"; // first: a code in the address is no view
import { effect, html, render } from "./lib/ui.js";
import { showDot } from "./lib/favicon.js";
import { addShortcuts } from "./lib/keys.js";
import { go, link } from "./lib/router.js";
import { inboxCount } from "./lib/inbox.js";
import { start, status } from "./lib/store.js";
import { toggle } from "./lib/theme.js";
import { beginReading } from "./lib/seen.js";
import { say } from "./lib/toasts.js";
import { Shell } from "./shell/shell.js";
import { showHelp } from "./shell/help.js";
import { extras, views } from "./views/index.js";

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${Shell} />`, root);

addShortcuts([
  ["?", "Show these shortcuts", showHelp],
  ["t", "Toggle light and dark", toggle],
  ...views.map(({ key, title, id }) => [`g ${key}`, title, () => go(link(id)), { group: "Go to" }]),
]);

effect(() => {
  const name = [status.value?.projectName, "Agent Relay"].filter(Boolean).join(" · ");
  document.title = inboxCount.value ? `(${inboxCount.value}) ${name}` : name;
});

effect(() => { showDot(inboxCount.value > 0); });

effect(beginReading);

start().catch((error) => say(error.message, { tone: "danger", stay: true }));

/** Until it is there: the daemon may have gone away just now. */
async function loadExtra(load) {
  for (;;) {
    try {
      return await load();
    } catch {
      await new Promise((again) => setTimeout(again, 1000));
    }
  }
}

Promise.all(extras.map(loadExtra)).then(() => { document.body.dataset.loaded = "all"; });
