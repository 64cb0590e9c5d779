"""The page of the API: its OpenAPI description for people. It has no script, and loads nothing from anywhere."""

from __future__ import annotations

import html
from typing import Any

import msgspec

_LIMITS = (("minLength", "maxLength", " characters"), ("minItems", "maxItems", " entries"), ("minimum", "maximum", ""))
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


def docs_page(description: dict[str, Any]) -> bytes:
    info, schemas = description["info"], description["components"]["schemas"]
    parts = [f"<p>{html.escape(info['description'])}</p>"]
    parts.append('<p>Version {} · <a href="openapi.json">openapi.json</a></p>'.format(html.escape(info["version"])))
    for tag in description["tags"]:
        parts.append(f"<h2>{html.escape(tag['description'])}</h2>")
        for path, methods in description["paths"].items():
            parts += [_operation(path, method, said, schemas) for method, said in methods.items() if tag["name"] in said["tags"]]
    parts.append("<h2>Schemas</h2>")
    for name, schema in schemas.items():
        # The id is inside, so that a link to it opens it.
        parts.append(
            f'<details><summary>{html.escape(name)}</summary><div id="{html.escape(name)}">{_fields(schema)}</div></details>'
        )
    return _page("Agent Relay: HTTP API", "".join(parts))


def _operation(path: str, method: str, said: dict[str, Any], schemas: dict[str, Any]) -> str:
    parts = [
        f"<details><summary><b>{method.upper()}</b> <code>{html.escape(path)}</code> {html.escape(said['summary'])}</summary>"
    ]
    if "description" in said:
        parts.append(f"<p>{html.escape(said['description'])}</p>")
    if "parameters" in said:
        rows = "".join(_field(each["name"], each["schema"], each["in"]) for each in said["parameters"])
        parts.append(f"<p>Parameters:</p><table>{rows}</table>")
    if "requestBody" in said:
        body = said["requestBody"]["content"]["application/json"]["schema"]
        parts.append(f"<p>Body: {_kind(body)}</p>{_fields(schemas.get(_name(body), {}))}")
    rows = "".join(
        f"<tr><td><code>{status}</code></td><td>{_answer(each)}</td></tr>" for status, each in said["responses"].items()
    )
    parts.append(f"<p>Answers:</p><table>{rows}</table></details>")
    return "".join(parts)


def _answer(response: dict[str, Any]) -> str:
    kinds = [f"{media} {_kind(each['schema'])}" for media, each in response["content"].items()]
    return f"{html.escape(response['description'])}: {', '.join(kinds)}"


def _fields(schema: dict[str, Any]) -> str:
    if "properties" not in schema:
        return ""
    required = schema.get("required", [])
    rows = (_field(name, each, "" if name in required else "optional") for name, each in schema["properties"].items())
    about = f"<p>{html.escape(schema['description'])}</p>" if "description" in schema else ""
    return f"{about}<table>{''.join(rows)}</table>"


def _field(name: str, schema: dict[str, Any], note: str) -> str:
    cells = (f"<code>{html.escape(name)}</code>", note, _kind(schema), html.escape(schema.get("description", "")))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _kind(schema: dict[str, Any]) -> str:
    """The kind of value, in a few words."""
    if "$ref" in schema:
        name = html.escape(_name(schema))
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(f"<code>{html.escape(_text(each))}</code>" for each in schema["enum"])
    if isinstance(schema.get("items"), dict):  # else each place has a type of its own
        return f"list of {_kind(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_kind(schema['additionalProperties'])}"
    limits = [f", {schema.get(low, 0)} to {schema[high]}{unit}" for low, high, unit in _LIMITS if high in schema]
    return html.escape(f"{schema.get('type', 'anything')}{''.join(limits)}")


def _name(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _page(title: str, content: str) -> bytes:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>{content}</body></html>\n"
    ).encode()
