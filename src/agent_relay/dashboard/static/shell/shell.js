// The frame around every view: top bar, navigation and agents, the view itself, details, and what stands in front of them.

import { classes, html, useEffect, useState } from "../lib/ui.js";
import { connection, reconnectNow } from "../lib/live.js";
import { route, viewId } from "../lib/router.js";
import { isReady } from "../lib/store.js";
import { Boundary } from "../parts/boundary.js";
import { Button } from "../parts/button.js";
import { Failed, Loading } from "../parts/empty.js";
import { Toasts } from "../parts/toasts.js";
import { UndoBar } from "../parts/undo.js";
import { views } from "../views/index.js";
import { Details } from "./details.js";
import { Dock } from "./dock.js";
import { Help } from "./help.js";
import { KeyDialog } from "./key-dialog.js";
import { Sidebar } from "./sidebar.js";
import { Topbar } from "./topbar.js";

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
    <${UndoBar} /><${Toasts} /><${Help} /><${KeyDialog} />`;
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

/** Loads a view's file when it is first shown. */
function View({ id }) {
  const [loaded, setLoaded] = useState({});
  const wanted = views.find((each) => each.id === id) ?? views[0];
  const read = () => wanted.load().then(
    (module) => setLoaded({ id: wanted.id, component: module.default }),
    (error) => setLoaded({ id: wanted.id, error }),
  );
  useEffect(() => { read(); }, [wanted.id]);
  useEffect(() => { document.body.dataset.view = wanted.id; }, [wanted.id]);
  if (loaded.id !== wanted.id) return html`<${Loading} />`;
  if (loaded.error) return html`<${Failed} error=${loaded.error} again=${read} />`;
  return html`<${loaded.component} route=${route.value} />`;
}
