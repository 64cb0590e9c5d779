"""Names of the CLIs' tools, and the kind of tool each stands for.

Every CLI has its own names for the same things; rules are written for the kinds. A name that is not in the table is its
own kind, which no default rule approves. Names are compared as they are written, but for the case of ASCII letters: a
look-alike, a name with a space before it or one that only resembles a known name is another name.
"""

from __future__ import annotations

READ, GLOB, GREP, LIST = "read", "glob", "grep", "list"
BASH, POWERSHELL = "bash", "powershell"
EDIT, WRITE = "edit", "write"
FETCH, SEARCH = "fetch", "search"

SHELLS = frozenset({BASH, POWERSHELL})
CHANGES = frozenset({EDIT, WRITE})
FILE_TOOLS = frozenset({READ, GLOB, GREP, LIST, EDIT, WRITE})  # what they are about is a file or a folder
LOOKS = frozenset({READ, GLOB, GREP, LIST, SEARCH})  # they change nothing here

_NAMES: dict[str, tuple[str, ...]] = {
    READ: ("read", "readfile", "read_file", "read_many_files", "notebookread", "view"),
    GLOB: ("glob", "find_files"),
    GREP: ("grep", "grep_search", "grep_files", "search_file_content"),
    LIST: ("list", "ls", "list_dir", "list_directory"),
    BASH: (
        "bash", "shell", "shell_command", "local_shell", "exec_command", "unified_exec", "commandexecution",
        "run_shell_command", "developer__shell",
    ),
    POWERSHELL: ("powershell",),
    EDIT: (
        "edit", "multiedit", "notebookedit", "replace", "apply_patch", "filechange", "patch", "str_replace", "str_replace_editor",
        "developer__text_editor",
    ),
    WRITE: ("write", "writefile", "write_file", "create_file", "create"),
    FETCH: ("fetch", "webfetch", "web_fetch"),
    SEARCH: ("websearch", "web_search", "google_web_search"),
}  # fmt: skip
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names}


def kind_of(tool: str) -> str:
    """The kind of tool; the name itself where it is not known."""
    return _KINDS.get(tool.lower(), tool) if tool.isascii() else tool
