"""The OpenAPI 3.1 description, made of the table of routes and of the structs that the routes read and write."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import NODEFAULT, Struct, inspect

from agent_relay.events.types import AnyEvent, Event
from agent_relay.transports.http.bodies import NAME
from agent_relay.transports.http.errors import ErrorBody, FlatError
from agent_relay.transports.http.repeats import KEY, KEY_HEADER
from agent_relay.transports.http.route import JSON, SSE, Route
from agent_relay.version import __version__

Json = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"
_ENVELOPE = {field.encode_name for field in msgspec.structs.fields(Event)}
_ABOUT = (
    "Start agents, watch what they do, approve or deny what they ask, send them messages, and see what it costs. "
    "All errors have the same shape, with a code from the wire protocol."
)
_STREAM = (
    "Server-sent events: `event` is the type, `id` the sequence number, `data` the event as JSON. Events recorded after "
    "`offset` (or `Last-Event-ID`, or since `since`) come first, then live events; without any of these, only live ones."
)
_KEY_PARAMETER: Json = {
    "name": KEY_HEADER, "in": "header", "required": False, "schema": {"type": "string", "pattern": f'^(\"{KEY}\"|{KEY})$'},
    "description": "Unique per request, for example a UUID. Send the same key when you repeat a request because its response was "
    "lost: the repeat gets the first response, status and body, and nothing is done twice. Keys are remembered for 24 hours; "
    "those of messages across daemon restarts too. Refused requests are not remembered. Reusing a key for a different request "
    "returns 422 with `details.reason` `key_reused`.",
}  # fmt: skip
_TAGS = {
    "server": "The server itself", "sessions": "Start and stop agents", "agents": "Agents, and commands to them",
    "permissions": "Permission requests and questions", "events": "Events", "messages": "Messages",
    "channels": "Channels and their members", "proposals": "Proposals and votes",
    "costs": "Tokens, prices, budgets", "arc": "Agents over WebSocket",
    "workspaces": "Project directories, and older routes to agents",
}  # fmt: skip

_ONE_NEEDED = {"NewMessage": ("to", "topic")}  # of these fields
_PATH_PARTS = {"channel": {"type": "string", "pattern": f"^#?{NAME}$"}}


def describe(routes: Iterable[Route]) -> Json:
    routes = [route for route in routes if route.is_described]
    answers = [ErrorBody, FlatError, *(route.answer for route in routes if route.answer is not None)]
    by_type, components = describe_types(answers, [route.body for route in routes if route.body is not None])
    for name, fields in _ONE_NEEDED.items():
        if name in components:
            # Not `anyOf`: generators make a union of that, and lose the name.
            components[name]["not"] = {"properties": {field: {"type": "null"} for field in fields}}
    paths: dict[str, Json] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_type)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Agent Relay", "version": __version__, "description": _ABOUT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "security": [{"bearerAuth": []}, {"pageCookie": [], "pageHeader": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearerAuth": {
                    "type": "http", "scheme": "bearer",
                    "description": "The content of `api-token` in the daemon's directory: the value of AGENT_RELAY_API_TOKEN, "
                    "or a token the daemon created at its first start.",
                },
                "pageCookie": {
                    "type": "apiKey", "in": "cookie", "name": "agent-relay-ID",
                    "description": "One half of a page's key, set by `POST /api/v1/page-keys`; ID is the relay's.",
                },
                "pageHeader": {
                    "type": "apiKey", "in": "header", "name": "X-Relay-Page",
                    "description": "The other half, from the same response.",
                },
            },
        },
    }  # fmt: skip


def encode_description(routes: Iterable[Route]) -> bytes:
    """As it is served and written down: readable, and the same every time."""
    return msgspec.json.format(msgspec.json.encode(describe(routes)), indent=2) + b"\n"


def _operation(route: Route, by_type: dict[int, Json]) -> Json:
    operation: Json = {"operationId": _operation_id(route), "summary": route.summary, "tags": [route.tag]}
    is_feed = route.media == SSE and not route.description  # of events
    if is_feed or route.description:
        operation["description"] = route.description or _STREAM
    if route.is_open:
        operation["security"] = []
    parameters = [*_path_parameters(route), *_query_parameters(route)]
    if route.takes_key:
        parameters.append(_KEY_PARAMETER)
    if is_feed:
        schema = {"type": "string", "pattern": "^[0-9]{1,16}$"}
        parameters.append({"name": "Last-Event-ID", "in": "header", "required": False, "schema": schema})
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        content = {JSON: {"schema": by_type[id(route.body)]}}
        operation["requestBody"] = {"required": route.needs_body, "content": content}
    operation["responses"] = {str(route.status): _good(route, by_type)} | {
        str(status): _bad(route, status, by_type) for status in sorted(_statuses(route))
    }
    return operation


def _operation_id(route: Route) -> str:
    """`POST /api/v1/agents/{name}/pause` is `post_agents_name_pause`."""
    words = [part.strip("{}") for part in route.path.removeprefix("/api/v1").split("/") if part]
    prefix = "" if route.path.startswith("/api/v1") or route.tag == "server" else "plain_"
    return "_".join([prefix + route.method.lower(), *words] if words else [route.method.lower(), "dashboard"]).replace(
        "-", "_"
    ).replace(".", "_")  # fmt: skip


def _path_parameters(route: Route) -> list[Json]:
    schema = {"type": "string", "minLength": 1}
    return [{"name": name, "in": "path", "required": True, "schema": _PATH_PARTS.get(name, schema)} for name in route.names]


def _query_parameters(route: Route) -> list[Json]:
    if route.query is None:
        return []
    return [
        {"name": name, "in": "query", "required": name not in _defaults(route.query), "schema": schema}
        for name, schema in _fields(route.query).items()
    ]


def _fields(kind: type[Struct]) -> dict[str, Json]:
    _, components = msgspec.json.schema_components([kind], ref_template=_REFERENCE)
    properties: dict[str, Json] = components[kind.__name__]["properties"]
    defaults = _defaults(kind)
    return {name: _without_null(schema, defaults.get(name)) for name, schema in properties.items()}


def _defaults(kind: type[Struct]) -> dict[str, Any]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: field.default for field in info.fields if field.default is not NODEFAULT}


def _without_null(schema: Json, default: Any) -> Json:
    """A parameter is there or it is not; there is no null in a query."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    plain = kinds[0] if len(kinds) == 1 else {name: value for name, value in schema.items() if name != "default"}
    return plain if default is None else plain | {"default": default}


def _good(route: Route, by_type: dict[int, Json]) -> Json:
    schema = {"type": "string"} if route.answer is None else by_type[id(route.answer)]
    return {"description": HTTPStatus(route.status).phrase, "content": {route.media.partition(";")[0]: {"schema": schema}}}


def _statuses(route: Route) -> set[int]:
    found = {403, *route.errors}
    if not route.is_open:
        found.add(401)
    if route.query is not None or route.takes_key:
        found.add(422)
    if route.method != "GET":
        found |= {413, 415}
    if route.method != "GET" and not route.is_flat:
        found.add(422)
    return found


def _bad(route: Route, status: int, by_type: dict[int, Json]) -> Json:
    content = {JSON: {"schema": by_type[id(FlatError if route.is_flat else ErrorBody)]}}
    return {"description": HTTPStatus(status).phrase, "content": content}


# --- the schemas of the types ------------------------------------------------------------------------------------------------
# As generators of clients need them: what is always there is said to be, and what need not be is not. msgspec describes what it
# reads, and there a field with a default may be missing. What we write is another matter: an answer has all of its fields, and an
# event all but those that say nothing.


def describe_types(answers: Iterable[Any], bodies: Iterable[Any]) -> tuple[dict[int, Json], Json]:
    """The schema of each type by its `id`, and the components they refer to."""
    bodies = list(bodies)
    kinds = list({id(kind): kind for kind in [*answers, *bodies]}.values())
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCE)
    events, read = _names([AnyEvent]), _names(bodies)
    for name, schema in components.items():
        if name in events:
            schema["required"] = [field for field in schema["properties"] if field in {*schema["required"], *_ENVELOPE}]
        elif name not in read:
            always = {*schema.get("required", ()), *(name for name, field in schema["properties"].items() if "default" in field)}
            schema["required"] = [name for name in schema["properties"] if name in always]  # what may be unset has no default
        _plain(schema)
    return {id(kind): _open(schema) for kind, schema in zip(kinds, schemas, strict=True)}, dict(sorted(components.items()))


def _names(kinds: list[Any]) -> set[str]:
    return set(msgspec.json.schema_components(kinds, ref_template=_REFERENCE)[1])


def _plain(schema: Json) -> None:
    """A default becomes a sentence: generators take it for a promise that the field is there."""
    for name, each in schema["properties"].items():
        default = each.pop("default", None)
        if default is not None and name not in schema["required"]:
            each["description"] = f"{each.get('description', '')} Without it: {msgspec.json.encode(default).decode()}.".lstrip()
        _open(each)


def _open(schema: Json) -> Json:
    """An object of which nothing is known may hold anything, and words to choose from are text: generators need to be told."""
    if schema.get("type") == "object" and not schema.keys() & {"properties", "additionalProperties"}:
        schema["additionalProperties"] = True
    if "prefixItems" in schema:  # which hardly any generator reads: a list of what its places may hold
        kinds = {_key(part): part for part in schema.pop("prefixItems")}
        schema["items"] = next(iter(kinds.values())) if len(kinds) == 1 else {"anyOf": list(kinds.values())}
    if "enum" in schema and all(isinstance(word, str) for word in schema["enum"]):
        schema["type"] = "string"
    for part in [*schema.get("anyOf", []), schema.get("items"), schema.get("additionalProperties")]:
        if isinstance(part, dict):
            _open(part)
    return schema


def _key(schema: Json) -> bytes:
    return msgspec.json.encode(schema, order="deterministic")
