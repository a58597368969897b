"""What a policy says of a path: the longer entry holds, and at one path the stricter."""

import pytest

from holdfast.location.box.policy import Access, BoxPolicy, CacheLayer

POLICY = BoxPolicy(
    mode="workspace",
    write=("/work", "/home/me/open"),
    temporary="/tmp/own",
    caches=(CacheLayer("/home/me/.cache", "/state/cache"),),
    hidden=("/home/me/.ssh", "/work/private", "/data", "/home/me/.cache/browser"),
    revealed=("/data/output",),
    protected=("/work/.git/config", "/work/.git/hooks"),
    pinned=("/work/.git",),
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/work", "write"),
        ("/work/a/b", "write"),
        ("/workshop/a", "read"),
        ("/work/.git/index", "write"),
        ("/work/.git/config", "read"),
        ("/work/.git/hooks/pre-commit", "read"),
        ("/work/private/key", "none"),
        ("/home/me/.ssh", "none"),
        ("/home/me/.ssh2", "read"),
        ("/home/me/.cache/pip/x", "write"),
        ("/home/me/.cache/browser/x", "none"),
        ("/data/auth.json", "none"),
        ("/data/output/tool_1", "read"),
        ("/tmp/own/x", "write"),
        ("/dev/null", "write"),
        ("/etc/passwd", "read"),
        ("/", "read"),
    ],
)
def test_access(path: str, expected: Access) -> None:
    """Each path by the longest entry that covers it."""
    assert POLICY.access(path) == expected


def test_at_one_path_hidden_wins() -> None:
    """Also over writable and protected."""
    policy = BoxPolicy(mode="workspace", write=("/a",), hidden=("/a",), protected=("/a",), revealed=("/a",))

    assert policy.access("/a/b") == "none"


def test_read_only_has_no_worktree() -> None:
    """Only what every box has is writable."""
    policy = BoxPolicy(mode="read-only", temporary="/tmp/own")

    assert (policy.access("/work/a"), policy.access("/tmp/own/a")) == ("read", "write")
