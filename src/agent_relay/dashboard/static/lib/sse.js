// Server-sent events out of a fetch: an EventSource cannot send a token in a header.

/** Calls `onEvent({ type, id, data })` for each event of the response's body, `onBytes()` for every chunk; returns at its end. */
export async function readEvents(body, onEvent, onBytes) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onBytes();
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = parseBlock(block);
      if (event) onEvent(event);
    }
  }
}

function parseBlock(block) {
  const event = { type: "message", id: null, data: "" };
  for (const line of block.split("\n")) {
    if (line.startsWith("data: ")) event.data += (event.data && "\n") + line.slice(6);
    else if (line.startsWith("event: ")) event.type = line.slice(7);
    else if (line.startsWith("id: ")) event.id = Number(line.slice(4));
  }
  return event.data ? event : null; // a comment, such as a heartbeat
}
