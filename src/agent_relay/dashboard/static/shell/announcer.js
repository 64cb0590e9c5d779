// What arrives in the inbox, for whoever hears the page: said once, after what is being said now.

import { html, useEffect, useState } from "../lib/ui.js";
import { onArrivals } from "../lib/arrivals.js";
import { describeItem } from "../lib/inbox-words.js";

const SAID_MS = 8_000; // then it is no longer found by going through the page

export function Announcer() {
  const [words, setWords] = useState("");
  useEffect(() => onArrivals((fresh) => setWords(fresh.map((item) => `${describeItem(item).title}.`).join(" "))), []);
  useEffect(() => {
    const timer = setTimeout(() => setWords(""), SAID_MS);
    return () => clearTimeout(timer);
  }, [words]);
  return html`<p class="sr-only" role="status" aria-live="polite" data-announcer>${words}</p>`;
}
