"""Diffs, hunks, contents and patches → changes of files."""

from __future__ import annotations

from agent_relay.terminal.output.transcripts.file_changes import (
    MAX_CHANGES,
    MAX_DIFF_CHARACTERS,
    FileChange,
    read_content,
    read_diff,
    read_hunks,
    read_patch,
)

PATCH = """*** Begin Patch
*** Add File: new.py
+one
+two
*** Update File: old.py
@@ def f():
 same
-was
+is
*** Delete File: gone.py
*** Update File: from.py
*** Move to: to.py
@@
-x
*** End Patch
+not part of it"""


def test_the_lines_of_a_diff_are_counted_without_its_head() -> None:
    diff = "Index: a\n====\n--- a\tCurrent\n+++ a\tProposed\n@@ -1,2 +1,2 @@\n same\n-was\n+is\n"
    assert read_diff("edit", "a", diff) == FileChange("edit", "a", 2, "@@ -1,2 +1,2 @@\n same\n-was\n+is")
    assert read_diff("edit", "a", "--- a\n+++ b\n") == FileChange("edit", "a")


def test_hunks() -> None:
    hunks = [{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" same", "-was", "+is"]}]
    assert read_hunks("write", "a", hunks) == FileChange("write", "a", 2, "@@ -1,2 +1,2 @@\n same\n-was\n+is")
    for strange in (None, [], "x", [3]):
        assert read_hunks("write", "a", strange) == FileChange("write", "a")
    assert read_hunks("write", "a", [{"lines": 5}]).lines_changed == 0


def test_a_new_file() -> None:
    assert read_content("a", "x\ny") == FileChange("create", "a", 2, "@@ -0,0 +1,2 @@\n+x\n+y")
    assert read_content("a", "").lines_changed == 0


def test_a_patch_of_several_files() -> None:
    assert read_patch(PATCH) == [
        FileChange("create", "new.py", 2, "+one\n+two"),
        FileChange("edit", "old.py", 2, "@@ def f():\n same\n-was\n+is"),
        FileChange("delete", "gone.py"),
        FileChange("delete", "from.py"),
        FileChange("create", "to.py", 1, "@@\n-x"),
    ]
    assert read_patch("nothing of the kind") == []


def test_a_diff_is_bounded_and_counted_whole() -> None:
    change = read_content("a", "line\n" * 5_000)
    assert change.lines_changed == 5_000
    assert len(change.diff) <= MAX_DIFF_CHARACTERS
    assert change.diff.endswith("+line")
    assert len(read_patch("".join(f"*** Add File: {n}\n+x\n" for n in range(500)))) == MAX_CHANGES
