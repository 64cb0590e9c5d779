// The frame around every view: top bar, navigation and agents, the view itself, details, and what stands in front of them.

import { classes, html, useEffect, useState } from "../lib/ui.js";
import { connection, reconnectNow } from "../lib/live.js";
import { route, viewId } from "../lib/router.js";
import { Slot } from "../lib/slots.js";
import { isReady } from "../lib/store.js";
import { Boundary } from "../parts/boundary.js";
import { Button } from "../parts/button.js";
import { Empty, Loading } from "../parts/empty.js";
import { Toasts } from "../parts/toasts.js";
import { UndoBar } from "../parts/undo.js";
import { pages, views } from "../views/index.js";
import { Announcer } from "./announcer.js";
import { Details } from "./details.js";
import { Dock } from "./dock.js";
import { Help } from "./help.js";
import { KeyDialog } from "./key-dialog.js";
import { Sidebar } from "./sidebar.js";
import { Topbar } from "./topbar.js";

const MOST_TRIES = 6; // while the daemon is there
const TRY_AGAIN_MS = 800;

export function Shell() {
  const view = viewId.value;
  return html`<a class="skip" href="#main" onClick=${toMain}>Skip to content</a>
    <div class=${classes("shell", view === "agents" && "shows-agents")}>
      <${Topbar} />
      <${Sidebar} />
      <main class="main" id="main" tabindex="-1"><${Banner} /><${Boundary} key=${view}><${View} id=${view} /><//></main>
      <${Boundary}><${Details} /><//>
      <${Dock} />
    </div>
    <${UndoBar} /><${Toasts} /><${Announcer} /><${Help} /><${KeyDialog} /><${Slot} place="front" />`;
}

function toMain(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function Banner() {
  if (connection.value.state !== "reconnecting" || !isReady.value) return null;
  const why = connection.value.reason || "The daemon does not respond.";
  return html`<div class="banner" role="status"><span>${why} This page may be out of date; nothing is lost.</span>
    <${Button} small onClick=${reconnectNow}>Try now<//></div>`;
}

/** Loads a view's file when it is first shown; where it cannot be had, again as soon as the daemon is there. */
function View({ id }) {
  const [loaded, setLoaded] = useState({});
  const wanted = [...views, ...pages].find((each) => each.id === id) ?? views[0];
  const read = () => wanted.load().then(
    (module) => setLoaded({ id: wanted.id, component: module.default }),
    () => setLoaded((now) => ({ id: wanted.id, failures: now.id === wanted.id ? now.failures + 1 : 1 })),
  );
  const { failures = 0 } = loaded.id === wanted.id ? loaded : {};
  const isLive = connection.value.state === "live";
  useEffect(() => { read(); }, [wanted.id]);
  useEffect(() => {
    if (!failures || !isLive || failures >= MOST_TRIES) return undefined;
    const timer = setTimeout(read, TRY_AGAIN_MS);
    return () => clearTimeout(timer);
  }, [failures, isLive]);
  useEffect(() => { document.body.dataset.view = wanted.id; }, [wanted.id]);
  if (loaded.id !== wanted.id) return html`<${Loading} />`;
  if (failures) return html`<${NotLoaded} isLive=${isLive} isHopeless=${failures >= MOST_TRIES} again=${read} />`;
  return html`<${loaded.component} route=${route.value} />`;
}

/** Some browsers remember for as long as the page lives that a file could not be had: then only a new page helps. */
function NotLoaded({ isLive, isHopeless, again }) {
  if (isHopeless) {
    return html`<${Empty} icon="alert" title="This view could not be loaded"><p>Load the page again; what waits for you stays as it is.</p>
      <${Button} icon="refresh" kind="primary" onClick=${() => location.reload()}>Load the page again<//><//>`;
  }
  const why = isLive ? "It is tried again in a moment." : "The daemon does not respond. The view opens as soon as it is back.";
  return html`<${Empty} icon="alert" title="This view is not loaded yet"><p>${why}</p><${Button} icon="refresh" onClick=${again}>Try again<//><//>`;
}
