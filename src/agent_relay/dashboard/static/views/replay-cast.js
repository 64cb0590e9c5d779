// Recordings of terminals (asciicast v2), as `agent-relay record` makes them.

/** { columns, rows, title, startedAt: ms or null, events: [[ms, kind, data]] }; raises Error with a sentence for people. */
export function readCast(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  const header = parse(lines[0]);
  if (header?.version !== 2 || !header.width || !header.height) throw new Error("This is not a recording: it must be an asciicast v2 file.");
  const events = lines.slice(1).map(parse).filter((each) => Array.isArray(each) && typeof each[0] === "number" && typeof each[2] === "string");
  return {
    columns: header.width, rows: header.height, title: header.title ?? "", startedAt: header.timestamp ? header.timestamp * 1_000 : null,
    events: events.map(([seconds, kind, data]) => [seconds * 1_000, kind, data]),
  };
}

function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return null; // a recording that was cut short ends with half a line
  }
}

/** The moment a recording begins at in a replay: its own, where it falls into it, or else the replay's beginning. */
export function beginningOf(cast, { from, to }) {
  const length = cast.events.at(-1)?.[0] ?? 0;
  const fits = cast.startedAt !== null && cast.startedAt < to && cast.startedAt + length > from;
  return fits ? cast.startedAt : from;
}
