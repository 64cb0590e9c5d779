// A client of the relay with another implementation of WebSockets, told by lines of JSON what to do; every line it writes is
// something that happened: {"name", "event", ...}.
"use strict";

const readline = require("node:readline");
const WebSocket = require("ws");

const sockets = new Map();

function tell(name, event, more = {}) {
  process.stdout.write(JSON.stringify({ name, event, ...more }) + "\n");
}

function open({ name, url, token, query, answersPings = true }) {
  const address = query === undefined ? url : `${url}?token=${encodeURIComponent(query)}`;
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const socket = new WebSocket(address, { headers, perMessageDeflate: true, autoPong: answersPings });
  sockets.set(name, socket);
  socket.on("open", () => tell(name, "open", { extensions: socket.extensions }));
  socket.on("message", (data, isBinary) => tell(name, "message", { binary: isBinary, frame: JSON.parse(data.toString()) }));
  socket.on("ping", () => tell(name, "ping"));
  socket.on("pong", (data) => tell(name, "pong", { data: data.toString() }));
  socket.on("close", (code, reason) => tell(name, "close", { code, reason: reason.toString() }));
  socket.on("unexpected-response", (request, response) => {
    tell(name, "refused", { status: response.statusCode, retry_after: response.headers["retry-after"] });
    request.destroy();
  });
  socket.on("error", () => {}); // what went wrong is told by `refused` and `close`
}

async function request({ name, url, method, token, body }) {
  const headers = { ...(body === undefined ? {} : { "Content-Type": "application/json" }) };
  if (token !== undefined) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(url, { method, headers, body });
  tell(name, "answer", { status: answer.status, retry_after: answer.headers.get("retry-after"), body: await answer.json() });
}

function act(line) {
  const told = JSON.parse(line);
  const socket = sockets.get(told.name);
  switch (told.do) {
    case "open": open(told); break;
    case "request": request(told).catch((error) => tell(told.name, "failed", { message: String(error) })); break;
    case "say": socket.send(told.frame); break;
    case "say-binary": socket.send(Buffer.from(told.frame)); break;
    case "say-in-parts": // one message in several frames
      told.parts.forEach((part, index) => socket.send(part, { binary: false, fin: index === told.parts.length - 1 }));
      break;
    case "ping": socket.ping(told.data); break;
    case "stop-reading": socket.pause(); break;
    case "read-on": socket.resume(); break;
    case "close": socket.close(told.code, told.reason); break;
    case "vanish": socket.terminate(); break;
    default: throw new Error(`what is ${told.do}?`);
  }
}

readline.createInterface({ input: process.stdin }).on("line", act).on("close", () => process.exit(0));
tell("", "ready", { ws: require("ws/package.json").version });
