"""What a boxed command tries against the rest of the machine, and the error that stops it."""

import json

import pytest

from tests.location.box.users import HERE, ROOT, folder_of, lesser, run_as, uid_of

pytestmark = pytest.mark.needs("box")

THROUGH = "through"

# By attack: in the whole box, in the whole box on a host without Landlock, and in the partial one.
TABLE: dict[str, tuple[str, str, str]] = {
    "write": ("EROFS", "EROFS", "EACCES"),
    "append": ("EROFS", "EROFS", "EACCES"),
    "truncate": ("EROFS", "EROFS", "EACCES"),
    "truncate_by_open": ("EROFS", "EROFS", "EACCES"),
    "create": ("EROFS", "EROFS", "EACCES"),
    "make_folder": ("EROFS", "EROFS", "EACCES"),
    "unlink": ("EROFS", "EROFS", "EACCES"),
    "rename_out": ("EXDEV", "EXDEV", "EACCES"),
    "rename_in": ("EXDEV", "EXDEV", "EACCES"),
    "exchange": ("EXDEV", "EXDEV", "EACCES"),
    "hard_link_in": ("EXDEV", "EXDEV", "EXDEV"),
    "hard_link_out": ("EROFS", "EROFS", "EACCES"),
    "write_through_link": ("EROFS", "EROFS", "EACCES"),
    "change_mode": ("EROFS", "EROFS", THROUGH),
    "change_owner": ("EROFS", "EROFS", THROUGH),
    "change_time": ("EROFS", "EROFS", THROUGH),
    "change_attribute": ("EROFS", "EROFS", THROUGH),
    "inherited_descriptor": ("EBADF", "EBADF", "EBADF"),
    "owner_environment": ("ENOENT", "ENOENT", "EACCES"),
    "owner_memory": ("ENOENT", "ENOENT", "EACCES"),
    "owner_root": ("ENOENT", "ENOENT", "EACCES"),
    "owner_trace": ("ESRCH", "ESRCH", "EPERM"),
    "owner_read_memory": ("ESRCH", "ESRCH", "EPERM"),
    "owner_descriptor": ("ESRCH", "ESRCH", "EPERM"),
    "owner_signal": ("ESRCH", "ESRCH", "EPERM"),
    "owner_arguments": ("ENOENT", "ENOENT", THROUGH),
    "owner_descriptors": ("ENOENT", "ENOENT", THROUGH),
    "owner_limits": ("ESRCH", "ESRCH", THROUGH),
    "first_process": ("EACCES", "EACCES", "EACCES"),
    "read_hidden_file": ("EACCES", "EACCES", THROUGH),
    "list_hidden_folder": ("EACCES", "EACCES", THROUGH),
    "stat_in_hidden_folder": ("EACCES", "EACCES", THROUGH),
    "chmod_hidden_folder": ("EROFS", "EROFS", THROUGH),
    "hidden_below_writable": ("EACCES", "EACCES", THROUGH),
    "environment_key": ("ENOENT", "ENOENT", "ENOENT"),
    "make_device": ("EACCES", "EPERM", "EACCES"),
    "open_by_handle": ("EPERM", "EPERM", "EPERM"),
    "kernel_setting": ("EROFS", "EROFS", "EACCES"),
    "make_cgroup": ("EROFS", "EROFS", "EACCES"),
    "raw_disk": ("EACCES", "EACCES", "EACCES"),
    "nested_mount_over": ("EACCES", "EPERM", "EACCES"),
    "nested_unmount": ("EACCES", "EPERM", "EACCES"),
    "nested_remount": ("EACCES", "EPERM", "EACCES"),
    "nested_chroot": ("EACCES", "EPERM", "EACCES"),
    "git_hook": ("EROFS", "EROFS", THROUGH),
    "git_config": ("EROFS", "EROFS", THROUGH),
    "git_config_by_rename": ("EBUSY", "EBUSY", THROUGH),
    "git_hooks_moved": ("EBUSY", "EBUSY", THROUGH),
    "git_folder_moved": ("EBUSY", "EBUSY", THROUGH),
    # Nothing can be mounted on what is not there; the result of the command names it.
    "missing_settings": (THROUGH, THROUGH, THROUGH),
    "named_socket": ("EACCES", "EACCES", THROUGH),
    "abstract_socket": ("ECONNREFUSED", "ECONNREFUSED", "EPERM"),
    "tcp": ("ECONNREFUSED", "ECONNREFUSED", "EACCES"),
    "multipath_tcp": ("ECONNREFUSED", "ECONNREFUSED", THROUGH),
    "fast_open": ("ECONNREFUSED", "ECONNREFUSED", THROUGH),
    "udp": ("ECONNREFUSED", "ECONNREFUSED", THROUGH),
    "vsock": ("EAFNOSUPPORT", "EAFNOSUPPORT", "EAFNOSUPPORT"),
    "packets": ("EAFNOSUPPORT", "EAFNOSUPPORT", "EAFNOSUPPORT"),
    "io_uring": ("ENOSYS", "ENOSYS", "ENOSYS"),
    "keyring": ("EPERM", "EPERM", "EPERM"),
    "page_faults": ("EPERM", "EPERM", "EPERM"),
    "performance_events": ("EPERM", "EPERM", "EPERM"),
    "terminal_input": ("ENOTTY", "ENOTTY", "ENOTTY"),
}
COLUMNS = {"full": 0, "no Landlock": 1, "partial": 2}
# An ordinary user meets the permissions of a file before the read-only mount. A namespace of its own is
# granted to it without Landlock: there every mount is locked, and to change its root leads nowhere.
AS_USER = {
    ("full", "kernel_setting"): "EACCES",
    ("no Landlock", "kernel_setting"): "EACCES",
    ("no Landlock", "nested_chroot"): THROUGH,
    ("no Landlock", "nested_unmount"): "EINVAL",
    ("no Landlock", "nested_mount_over"): "EINVAL",
}
# Attacks that fail without a box too, here or for an ordinary user: there the table proves nothing.
VAIN = {"first_process", "terminal_input", "nested_unmount"}
VAIN_FOR_USERS = {
    "make_device",
    "open_by_handle",
    "kernel_setting",
    "make_cgroup",
    "raw_disk",
    "packets",
    "page_faults",
    "performance_events",
}
MAY_LACK = {"raw_disk", "vsock", "make_cgroup", "keyring", "page_faults", "performance_events", "io_uring"}
"""What another machine may refuse to everybody."""


def attacked(user: str, column: str) -> dict[str, str]:
    uid = uid_of(user)
    before = lesser(uid, "444=ENOSYS") if column == "no Landlock" else ()
    level = {"no Landlock": "full"}.get(column, column)
    with folder_of(uid) as folder:
        ran = run_as(uid, [str(HERE / "attack_world.py"), str(folder), level], *before)
        assert (ran.returncode, ran.stderr) == (0, "")
        kept = [(folder / "outside" / name).exists() for name in ("file", "doomed", "taken", "new", "moved")]
    found: dict[str, str] = json.loads(ran.stdout)
    if column != "bare":
        assert kept == [True, True, True, False, False]
    return found


def test_the_page_has_the_table() -> None:
    """docs/security.md says what these tests prove, row by row."""
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    words = {name: [each.replace(THROUGH, f"**{THROUGH}**") for each in row] for name, row in TABLE.items()}
    rows = [f"| {name.replace('_', ' ')} | {' | '.join(row)} |" for name, row in words.items()]

    assert [line for line in page.splitlines() if line in rows] == rows


@pytest.mark.ci
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("user", ["root", "ordinary"])
def test_each_attack_meets_its_error(user: str, column: str) -> None:
    """In a box of each kind every attack ends as the table says, as root and as an ordinary user."""
    expected = {name: row[COLUMNS[column]] for name, row in TABLE.items()}
    if user == "ordinary":
        expected |= {name: error for (at, name), error in AS_USER.items() if at == column}

    assert attacked(user, column) == expected


@pytest.mark.ci
@pytest.mark.parametrize("user", ["root", "ordinary"])
def test_each_attack_works_without_a_box(user: str) -> None:
    """Unconfined the attacks go through, but for those that are in vain anyway: the errors are the box's."""
    vain = VAIN | (VAIN_FOR_USERS if user == "ordinary" else set())

    stopped = {name for name, found in attacked(user, "bare").items() if found != THROUGH}

    assert stopped - MAY_LACK == vain - MAY_LACK
