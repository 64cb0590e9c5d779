"""The pages the API itself has. They are whole in themselves: no script, and nothing is loaded from anywhere."""

from __future__ import annotations

import html
from typing import Any

import msgspec

from agent_relay.version import __version__

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid #8886; border-radius: 6px; }
details { border-bottom: 1px solid #8884; padding: .35rem 0; }
summary { cursor: pointer; }
summary b { display: inline-block; min-width: 4.5rem; font: 600 13px ui-monospace, monospace; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .15rem 1rem .15rem 0; vertical-align: top; }
"""


def start_page() -> bytes:
    return _page(
        "Agent Relay",
        f"<p>This daemon runs version {html.escape(__version__)}.</p><ul>"
        '<li><a href="/docs">What it can do over HTTP</a> (<a href="/openapi.json">OpenAPI</a>)</li>'
        '<li><a href="/metrics">Numbers for Prometheus</a></li><li><a href="/health">Health</a></li></ul>',
    )


def docs_page(description: dict[str, Any]) -> bytes:
    info = description["info"]
    parts = [f"<p>{html.escape(info['description'])}</p>"]
    parts.append('<p>Version {} · <a href="/openapi.json">openapi.json</a></p>'.format(html.escape(info["version"])))
    for tag in description["tags"]:
        parts.append(f"<h2>{html.escape(tag['description'])}</h2>")
        for path, methods in description["paths"].items():
            parts += [_operation(path, method, said) for method, said in methods.items() if tag["name"] in said["tags"]]
    parts.append("<h2>Schemas</h2>")
    for name, schema in description["components"]["schemas"].items():
        parts.append(f'<details id="{html.escape(name)}"><summary>{html.escape(name)}</summary>{_json(schema)}</details>')
    return _page("Agent Relay: HTTP API", "".join(parts))


def _operation(path: str, method: str, said: dict[str, Any]) -> str:
    parts = [
        f"<details><summary><b>{method.upper()}</b> <code>{html.escape(path)}</code> {html.escape(said['summary'])}</summary>"
    ]
    if "description" in said:
        parts.append(f"<p>{html.escape(said['description'])}</p>")
    if "parameters" in said:
        rows = "".join(
            f"<tr><td><code>{html.escape(each['name'])}</code></td><td>{each['in']}</td>"
            f"<td><code>{html.escape(_text(each['schema']))}</code></td></tr>"
            for each in said["parameters"]
        )
        parts.append(f"<table>{rows}</table>")
    if "requestBody" in said:
        parts.append("<p>Body:</p>" + _json(said["requestBody"]["content"]["application/json"]["schema"]))
    rows = "".join(
        f"<tr><td><code>{status}</code></td><td>{_answer(each)}</td></tr>" for status, each in said["responses"].items()
    )
    parts.append(f"<p>Answers:</p><table>{rows}</table></details>")
    return "".join(parts)


def _answer(response: dict[str, Any]) -> str:
    kinds = [f"{media} {_link(each['schema'])}" for media, each in response["content"].items()]
    return f"{html.escape(response['description'])}: {', '.join(kinds)}"


def _link(schema: dict[str, Any]) -> str:
    reference = schema.get("$ref")
    if reference is None:
        return f"<code>{html.escape(_text(schema))}</code>"
    name = html.escape(reference.rpartition("/")[2])
    return f'<a href="#{name}">{name}</a>'


def _json(value: Any) -> str:
    return f"<pre>{html.escape(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())}</pre>"


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _page(title: str, content: str) -> bytes:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>{content}</body></html>\n"
    ).encode()
