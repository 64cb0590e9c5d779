// One tab stop for a whole list: Tab goes in and out, the arrow keys move within it, and the stop stays where the focus was last.
//
//   const list = useRoving(".row");   html`<ul ref=${list}>…rows…</ul>`

import { useLayoutEffect, useRef } from "../lib/ui.js";

/** A ref for the list; `rows` selects what is gone through in it. Whatever else can be focused in there is a stop of its own. */
export function useRoving(rows) {
  const list = useRef(null);
  useLayoutEffect(() => {
    const place = list.current;
    let stop = null;
    const mend = () => {
      const all = [...place.querySelectorAll(rows)];
      if (!all.includes(stop)) stop = all.find((row) => row.getAttribute("aria-current")) ?? all[0] ?? null;
      for (const row of all) {
        const wanted = row === stop ? "0" : "-1";
        if (row.getAttribute("tabindex") !== wanted) row.setAttribute("tabindex", wanted);
      }
    };
    const onFocus = ({ target }) => {
      const row = target.closest(rows);
      if (!row || row === stop) return;
      stop = row;
      mend();
    };
    const onKey = (event) => {
      const all = [...place.querySelectorAll(rows)];
      const at = all.indexOf(event.target);
      const next = { ArrowDown: all[at + 1], ArrowUp: all[at - 1], Home: all[0], End: all.at(-1) }[event.key];
      if (at < 0 || !next) return;
      event.preventDefault();
      next.focus();
    };
    const observer = new MutationObserver(mend); // rows come and go without the list being drawn
    observer.observe(place, { childList: true, subtree: true });
    place.addEventListener("focusin", onFocus);
    place.addEventListener("keydown", onKey);
    mend();
    return () => {
      observer.disconnect();
      place.removeEventListener("focusin", onFocus);
      place.removeEventListener("keydown", onKey);
    };
  }, []);
  return list;
}
