// A small client, written against types that openapi-typescript made of docs/api/openapi.json: `node program.js URL AGENT TOKEN`.
import type { components, paths } from "./relay";

declare const process: { argv: string[] };

type Schemas = components["schemas"];
type PathsWith<Method extends "get" | "post"> = {
  [Path in keyof paths]: paths[Path][Method] extends { responses: unknown } ? Path : never;
}[keyof paths];
type Answer<Operation> = Operation extends { responses: infer All } ? Json<All[keyof All & (200 | 201)]> : never;
type Json<Response> = Response extends { content: { "application/json": infer Body } } ? Body : never;
type Body<Operation> = Operation extends { requestBody?: { content: { "application/json": infer Sent } } } ? Sent : undefined;

const [, , relay = "", agent = "", token = ""] = process.argv;
const authorization = { Authorization: `Bearer ${token}` };

type Names = Record<string, string>;

async function get<Path extends PathsWith<"get">>(path: Path, names: Names = {}): Promise<Answer<paths[Path]["get"]>> {
  return read(await fetch(relay + fill(path, names), { headers: authorization }));
}

async function post<Path extends PathsWith<"post">>(
  path: Path, body: Body<paths[Path]["post"]>, names: Names = {},
): Promise<Answer<paths[Path]["post"]>> {
  const headers = { "Content-Type": "application/json", ...authorization };
  return read(await fetch(relay + fill(path, names), { method: "POST", headers, body: JSON.stringify(body) }));
}

async function read<Found>(response: Response): Promise<Found> {
  const found: unknown = await response.json();
  if (!response.ok) throw new Error((found as Schemas["ErrorBody"]).error.code);
  return found as Found;
}

function fill(path: string, names: Names): string {
  return path.replace(/{(\w+)}/g, (_, name: string) => encodeURIComponent(names[name] ?? ""));
}

// Each kind of event is told by its `type`, and has the fields of that kind alone.
function tell(event: Schemas["EventList"]["events"][number]): string {
  switch (event.type) {
    case "permission.requested":
      return `${event._agentName} asks: ${event.command ?? event.description}`;
    case "permission.resolved":
      return `${event.resolution} by ${event.resolvedBy}`;
    default:
      return event.type;
  }
}

async function main(): Promise<void> {
  const receipt = await post("/api/v1/messages", { to: agent, body: "from TypeScript" });
  const open = (await get("/api/v1/permissions")).permissions.filter((asked) => asked.agentName === agent);
  for (const asked of open) {
    const names = { name: agent, requestId: asked.requestId };
    await post("/api/v1/agents/{name}/permissions/{requestId}/approve", { reason: "Fine." }, names);
  }
  let failure = "";
  await get("/api/v1/agents/{name}", { name: "Nobody-Here" }).catch((error: Error) => (failure = error.message));
  let events: string[] = [];
  while (events.length < 2) {
    events = (await get("/api/v1/events")).events.filter((event) => event.type.startsWith("permission.")).map(tell);
  }
  console.log(JSON.stringify({ recipients: receipt.recipients, risks: open.map((asked) => asked.riskLevel), failure, events }));

  // What is wrong does not compile; were the types too loose, these lines would be errors themselves.
  // @ts-expect-error -- there is no such route
  void (() => get("/api/v1/nothing"));
  // @ts-expect-error -- it is `body`
  void (() => post("/api/v1/messages", { to: agent, text: "x" }));
  // @ts-expect-error -- a number
  void (() => receipt.recipients.trim());
  // @ts-expect-error -- may be missing
  void ((event: Schemas["PermissionRequested"]) => event.command.length);
}

void main();
