// Something read from the API for a component: `const { value, error, again } = useReading(() => get("…"), [id])`.

import { useCallback, useEffect, useState } from "./ui.js";

/** `value` is null until it was read; what was read for other `inputs` is never shown. */
export function useReading(read, inputs) {
  const [state, setState] = useState({ value: null, error: null, inputs: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let isWanted = true;
    read().then(
      (value) => isWanted && setState({ value, error: null, inputs }),
      (error) => isWanted && setState((now) => ({ ...now, error, inputs })),
    );
    return () => { isWanted = false; };
  }, [...inputs, turn]);
  const again = useCallback(() => setTurn((now) => now + 1), []);
  const isOurs = state.inputs !== null && state.inputs.every((each, index) => each === inputs[index]);
  return { value: isOurs ? state.value : null, error: isOurs ? state.error : null, again };
}
