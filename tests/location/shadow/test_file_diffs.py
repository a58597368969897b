"""What differs between two trees, over the real git."""

import os
from pathlib import Path

import pytest

from holdfast.location.shadow import file_diffs
from holdfast.location.shadow.file_diffs import Difference
from holdfast.location.shadow.repository import Shadow


class Place:
    """A folder, its shadow, and what differs after some work."""

    def __init__(self, top: Path) -> None:
        self.top = top / "p"
        self.top.mkdir()
        self.shadow = Shadow(top / "shadow", self.top)

    def write(self, name: str, data: bytes) -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path


@pytest.fixture
def folder(tmp_path: Path) -> Place:
    return Place(Path(os.path.realpath(tmp_path)))


def test_every_kind_of_change(folder: Place) -> None:
    """Added, removed, changed, renamed, binary, mode, kind, and files that do not end with a line feed; names
    with blanks, quotes and line feeds.
    """
    long = b"".join(b"line %d\n" % n for n in range(50))
    folder.write("gone", b"x\n")
    folder.write("text", b"a\nb\nc")
    folder.write("moved/from", long)
    folder.write("bin", b"\0\1")
    folder.write("mode", b"m\n")
    folder.write("kind", b"k\n")
    old = folder.shadow.take().id
    (folder.top / "gone").unlink()
    folder.write("text", b"a\nB\nc\n")
    (folder.top / "moved/from").rename(folder.top / "moved/to")
    folder.write("bin", b"\0\2")
    (folder.top / "mode").chmod(0o755)
    (folder.top / "kind").unlink()
    (folder.top / "kind").symlink_to("mode")
    folder.write('odd "\n name', b"1\n2\n")
    new = folder.shadow.take().id

    found = {each.path: each for each in file_diffs.differences(folder.shadow, old, new, renames=True)}
    plain = {each.path: each for each in file_diffs.differences(folder.shadow, old, new)}
    shape = {path: (each.status, each.additions, each.deletions) for path, each in found.items()}
    assert shape == {
        "gone": ("deleted", 0, 1),
        "text": ("modified", 2, 2),
        "moved/to": ("modified", 0, 0),
        "bin": ("modified", 0, 0),
        "mode": ("modified", 0, 0),
        "kind": ("modified", 1, 1),
        'odd "\n name': ("added", 2, 0),
    }
    assert (found["moved/to"].old_path, found["bin"].is_binary) == ("moved/from", True)
    assert found["text"].patch == (
        "diff --git a/text b/text\nindex d8f0ba6..0d7ba6d 100644\n--- a/text\n+++ b/text\n"
        "@@ -1,3 +1,3 @@\n a\n-b\n-c\n\\ No newline at end of file\n+B\n+c\n".replace(
            "d8f0ba6..0d7ba6d", found["text"].patch.split("index ")[1].split(" ")[0]
        )
    )
    assert "old mode 100644\nnew mode 100755\n" in found["mode"].patch
    assert found["kind"].patch.count("diff --git") == 2
    assert plain["moved/from"].status == "deleted"
    assert (plain["moved/to"].status, plain["moved/to"].additions) == ("added", 50)


def test_long_ones_are_cut(folder: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by itself, and all together; the counts stay. What is too large is shown as binary."""
    monkeypatch.setattr(file_diffs, "PATCH_CHARS_MAX", 200)
    monkeypatch.setattr(file_diffs, "PATCHES_CHARS_MAX", 420)
    monkeypatch.setattr(file_diffs, "TEXT_MAX", 10_000)
    old = folder.shadow.take().id
    for name in "abcd":
        folder.write(name, b"line\n" * (3_000 if name == "d" else 100))
    found = file_diffs.differences(folder.shadow, old, folder.shadow.take().id)

    assert [(each.path, each.additions, each.is_binary) for each in found] == [
        ("a", 100, False),
        ("b", 100, False),
        ("c", 100, False),
        ("d", 0, True),
    ]
    assert found[0].patch.endswith("+line\n(… 84 more lines of the diff)\n")
    assert found[2].patch == ""


def test_trees_made_by_hand_are_gits(folder: Place) -> None:
    """The same id as git gives to the same files, whatever their names."""
    for name in ("a-b", "a.b", "a/x", "a/y/z", "ab", "ü\n"):
        folder.write(name, name.encode())
    (folder.top / "a/x").chmod(0o755)
    (folder.top / "l").symlink_to("a")
    tree = folder.shadow.take().id
    empty = folder.shadow.make_tree({})
    entries = {each.path: (int(each.new_mode, 8), each.new) for each in folder.shadow.changes(empty, tree)}

    assert len(entries) == 7
    assert folder.shadow.make_tree(entries) == tree
    assert file_diffs.differences(folder.shadow, tree, tree) == []
    (one,) = file_diffs.differences(
        folder.shadow, empty, folder.shadow.make_tree({"ab": entries["ab"]}), context=file_diffs.WHOLE
    )
    assert one == Difference(path="ab", status="added", additions=1, patch=one.patch)
