"""Programs whose arguments mean something to us: what they touch, run, or change for the commands after them.

The lists are ours. A program that is on none of them is judged by its pattern alone: what it does by itself
(`make`, `python`, `npm`) is no matter of reading the command.
"""

from typing import Final

FOLDERS: Final = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/")
"""Where programs lie that are meant by their names alone."""

MOVES: Final = frozenset(("cd", "pushd", "popd", "chdir"))
"""Commands that go to a folder, and do nothing else."""

TOUCHES: Final = frozenset(
    (
        "cat", "chgrp", "chmod", "chown", "cp", "dd", "install", "ln", "mkdir", "mkfifo", "mknod", "mv",
        "rm", "rmdir", "shred", "tee", "touch", "truncate", "unlink",
    )
)  # fmt: skip
"""Programs all of whose arguments are files."""

OPAQUE: Final = frozenset(
    (
        ".", "alias", "bind", "chroot", "compgen", "complete", "compopt", "coproc", "enable", "eval", "fc",
        "flock", "hash", "let", "ltrace", "nsenter", "parallel", "runuser", "script", "setpriv", "shopt",
        "source", "strace", "su", "trap", "unalias", "unshare", "watch",
    )
)  # fmt: skip
"""Commands that run a text as code, or change what the names after them mean."""

SHELLS: Final = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox", "mksh", "rbash"))

BUILTINS: Final = frozenset(
    (
        ":", "[", "break", "builtin", "caller", "command", "continue", "declare", "dirs", "disown",
        "echo", "exec", "exit", "export", "false", "getopts", "jobs", "kill", "local", "logout", "mapfile",
        "printf", "pwd", "read", "readarray", "readonly", "return", "set", "shift", "suspend", "test",
        "time", "times", "true", "type", "typeset", "ulimit", "umask", "unset", "wait",
    )
)  # fmt: skip

WRITES_VARIABLES: Final = frozenset(("read", "mapfile", "readarray", "getopts", "unset"))
"""Commands whose arguments are names of variables that they change."""

KEYWORDS: Final = frozenset(
    (
        "!", "[[", "]]", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
        "select", "then", "until", "while", "{", "}",
    )
)  # fmt: skip
"""Where the parser shows one of these as a command, it has not understood what the shell will."""

CODE_OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "git": (
        "--config-env", "--exec", "--exec-path", "--extcmd", "--open-files-in-pager", "--receive-pack",
        "--upload-pack", "-O",
    ),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "sort": ("--compress-program",),
    "split": ("--filter",),
    "ssh": ("-o", "-F"),
    "scp": ("-o", "-F", "-S"),
    "tar": (
        "--checkpoint-action", "--rmt-command", "--rsh-command", "--to-command", "--use-compress", "-F", "-I",
    ),
    "zip": ("-TT", "--unzip-command"),
    "man": ("-P", "-H", "--pager", "--html"),
    "fd": ("-x", "-X", "--exec"),
    "rg": ("--pre", "--hostname-bin"),
}  # fmt: skip
"""Options by which a program runs another that it is given."""

GIT_RUNS: Final = frozenset(("bisect", "filter-branch", "submodule", "difftool", "mergetool"))
"""Subcommands of git that run commands, or programs that the settings name."""

GIT_SETTINGS: Final = (
    "advice.", "color.", "column.", "commit.gpgsign", "core.abbrev", "core.autocrlf", "core.quotepath",
    "i18n.", "init.defaultbranch", "log.date", "pull.rebase", "push.default", "tag.gpgsign", "user.email",
    "user.name",
)  # fmt: skip
"""What `git -c` may set without naming a program."""

SET_FLAGS: Final = frozenset("efuxvCE")
SET_OPTIONS: Final = frozenset(
    ("errexit", "errtrace", "noclobber", "noglob", "nounset", "pipefail", "verbose", "xtrace")
)
DEVICES: Final = frozenset(
    (
        "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout",
        "/dev/stderr", "/dev/tty",
    )
)  # fmt: skip
"""Files that are no place."""
