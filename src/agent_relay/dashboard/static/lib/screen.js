// How much room there is.

import { signal } from "./ui.js";

const narrow = matchMedia("(max-width: 760px)");

/** Whether the page is shown in one column, as on a phone. */
export const isPhone = signal(narrow.matches);
narrow.addEventListener("change", () => { isPhone.value = narrow.matches; });
