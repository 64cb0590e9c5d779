// How this browser gets in: a code that works once, `#code=…` in the address or typed in, is exchanged for a key.
//
// One half of the key is a cookie, which goes to every port of this host; the other half is kept here, where only pages of this very port
// find it, and sent in a header. So a server at another port learns nothing that it could use.

import { signal } from "./ui.js";

const STORED = `agent-relay.page.${document.querySelector("meta[name=relay]")?.content ?? ""}`;
const CODE = /^#code=([A-Za-z0-9_-]+)$/;

/** What the page should ask for: null, or { problem: string, enter(code) }. The shell shows a dialog while it is set. */
export const keyWanted = signal(null);

let asking = null;
let entering = null;
let failed = ""; // why the code in the address was in vain

/** What a request of this browser carries, once it is known whether a code in the address was good. */
export async function keyHeaders() {
  await entering;
  return storedHeaders();
}

function storedHeaders() {
  const half = localStorage.getItem(STORED);
  return half ? { "X-Relay-Page": half } : {};
}

/** Returns when there is another key than the one that was shown in vain. */
export async function askForKey(shown) {
  await entering;
  if (storedHeaders()["X-Relay-Page"] !== shown["X-Relay-Page"]) return; // another request, or another tab, was let in meanwhile
  asking ??= new Promise((resolve) => {
    const done = () => {
      keyWanted.value = null;
      asking = null;
      removeEventListener("storage", look);
      resolve();
    };
    const look = ({ key, newValue }) => { if (key === STORED && newValue) done(); };
    addEventListener("storage", look);
    keyWanted.value = { problem: failed, enter: (code) => enter(code, done) };
  });
  await asking;
}

async function enter(code, done) {
  const problem = await exchange(code);
  if (problem === null) done();
  else if (keyWanted.value) keyWanted.value = { ...keyWanted.value, problem };
}

/** The code in the address, if there is one, is used at once and taken out of it. */
export function useCodeOfAddress() {
  const code = CODE.exec(location.hash)?.[1];
  if (!code) return;
  history.replaceState(null, "", "#/");
  if (keyWanted.value) keyWanted.value.enter(code);
  else entering = exchange(code).then((problem) => {
    entering = null;
    failed = problem ?? "";
  });
}

/** What was wrong, as a sentence; null when this browser is let in. */
async function exchange(code) {
  try {
    const response = await fetch(new URL("api/v1/page-keys", document.baseURI), {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }),
      cache: "no-store", credentials: "same-origin", redirect: "error",
    });
    const said = await response.json();
    if (!response.ok) return said.error?.message ?? `The daemon responded with status ${response.status}.`;
    localStorage.setItem(STORED, said.key);
    return null;
  } catch {
    return "The daemon does not respond.";
  }
}

useCodeOfAddress();
addEventListener("hashchange", useCodeOfAddress);
