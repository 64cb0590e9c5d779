"""A YAML file as plain values, with the line that each stands in.

Only plain YAML: maps, lists, texts, numbers, `true`, `false` and `null`. Tags are refused, so no file can make an object.
`yes`, `no`, `on` and `off` are texts, as in YAML 1.2; a key that is there twice is a mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from agent_relay.patterns.results import EXTRA
from agent_relay.protocol.errors import ErrorCode, RelayError

MAX_BYTES = 1_000_000
_MAX_NODES = 20_000  # with aliases followed: a small file can stand for an enormous one
_TAG = "tag:yaml.org,2002:"
_PLAIN = {"str", "int", "float", "null", "bool", "timestamp"}
_BOOLEANS = {"true": True, "false": False}

Path = tuple[str | int, ...]


class RunFileError(RelayError):
    """A file that cannot be run; the message names the file, the line and the mistake."""

    def __init__(self, file: str, line: int, sentence: str) -> None:
        super().__init__(ErrorCode.INVALID_FORMAT, f"{file}, line {line}: {sentence}")
        self.details = {"file": file, "line": line}
        self.line = line


class Document:
    def __init__(self, file: str, value: Any, lines: dict[Path, int]) -> None:
        self.file = file
        self.value = value
        self._lines = lines

    def line_of(self, path: Sequence[str | int]) -> int:
        """The nearest part that is there counts: of a key that is missing, its map."""
        place = tuple(path)
        while place not in self._lines and place:
            place = place[:-1]
        return self._lines.get(place, 1)

    def error(self, path: Sequence[str | int], sentence: str) -> RunFileError:
        return RunFileError(self.file, self.line_of(path), sentence)


def read_document(text: str, file: str) -> Document:
    """Raises RunFileError, or RelayError where the package is not installed."""
    yaml = _load_yaml()
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise RunFileError(file, 1, f"The file is larger than {MAX_BYTES:,} bytes.")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        builder = _Builder(file, loader)
        value = None if node is None else builder.build(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise RunFileError(file, line, f"This is not valid YAML: {error.problem or error.context}.") from None
    except yaml.YAMLError as error:
        raise RunFileError(file, 1, f"This is not valid YAML: {str(error).splitlines()[0]}.") from None
    except RecursionError:
        raise RunFileError(file, 1, "The file is nested too deeply.") from None
    return Document(file, value, builder.lines)


def _load_yaml() -> Any:
    try:
        return import_module("yaml")
    except ImportError:
        raise RelayError(
            ErrorCode.FEATURE_UNSUPPORTED, f"`run` needs the package PyYAML: {EXTRA}.", reason="not_installed"
        ) from None


class _Builder:
    def __init__(self, file: str, loader: Any) -> None:
        self.lines: dict[Path, int] = {}
        self._file = file
        self._loader = loader
        self._count = 0

    def build(self, node: Any, path: Path) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        self._count += 1
        if self._count > _MAX_NODES:
            raise RunFileError(self._file, line, f"The file has more than {_MAX_NODES:,} values.")
        kind = node.tag.removeprefix(_TAG)
        match node.id:
            case "mapping" if kind == "map":
                return self._build_map(node, path)
            case "sequence" if kind == "seq":
                return [self.build(item, (*path, place)) for place, item in enumerate(node.value)]
            case "scalar" if kind in _PLAIN and node.tag.startswith(_TAG):
                return self._build_scalar(node, kind)
            case _:
                raise RunFileError(self._file, line, f"Tags such as {node.tag} are not allowed.")

    def _build_map(self, node: Any, path: Path) -> dict[str, Any]:
        self._loader.flatten_mapping(node)  # `<<`
        found: dict[str, Any] = {}
        explicit: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.id != "scalar":
                raise RunFileError(self._file, line, "A key must be a text. Put quotes around a value that begins with {{.")
            name = str(key.value)
            is_merged = not node.start_mark.index <= key.start_mark.index <= node.end_mark.index
            if name in explicit and not is_merged:
                raise RunFileError(self._file, line, f"The key {name} is there twice.")
            if not is_merged:
                explicit.add(name)
            self.lines[(*path, name)] = line
            found[name] = self.build(value, (*path, name))
        return found

    def _build_scalar(self, node: Any, kind: str) -> Any:
        if kind in {"str", "timestamp"}:
            return node.value
        if kind == "bool":
            return _BOOLEANS.get(node.value.lower(), node.value)
        try:
            return self._loader.construct_object(node)
        except ValueError:
            return node.value
