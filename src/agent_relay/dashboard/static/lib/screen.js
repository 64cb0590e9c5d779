// How much room there is, and whether anybody may be looking.

import { signal } from "./ui.js";

const narrow = matchMedia("(max-width: 760px)");

/** Whether the page is shown in one column, as on a phone. */
export const isPhone = signal(narrow.matches);
narrow.addEventListener("change", () => { isPhone.value = narrow.matches; });

/** Whether anybody may be looking. */
export const isPageSeen = signal(!document.hidden);
document.addEventListener("visibilitychange", () => { isPageSeen.value = !document.hidden; });
