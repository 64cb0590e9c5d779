// Work that many events ask for, done once a frame. A hidden tab has no frames, so there it is done a few times a second.

const HIDDEN_MS = 300;

/** A function that calls `work` once, soon, however often it is called. */
export function oncePerFrame(work) {
  let frame = 0;
  let timer = 0;
  const run = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    timer = 0;
    work();
  };
  return () => {
    if (timer) return;
    timer = setTimeout(run, HIDDEN_MS);
    frame = requestAnimationFrame(run);
  };
}

/** A function that calls `work` once `ms` after the last of its calls. */
export function afterQuiet(ms, work) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...args), ms);
  };
}

/** A function that calls `work` at once, and then at most once in `ms` (a number, or what returns one), also for the last of its calls. */
export function atMostEvery(ms, work) {
  let timer = 0;
  let isWanted = false;
  const run = () => {
    if (!isWanted) {
      timer = 0;
      return;
    }
    isWanted = false;
    timer = setTimeout(run, typeof ms === "function" ? ms() : ms);
    work();
  };
  return () => {
    isWanted = true;
    if (!timer) run();
  };
}
