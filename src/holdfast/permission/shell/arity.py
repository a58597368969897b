"""How many words name what a program does: `git push`, `npm run build`, `ls`. A table of our own.

With it "always" stands for that action with any arguments, and not for the whole program.
"""

from collections.abc import Sequence
from typing import Final

_TWO: Final = (
    "apt", "apt-get", "brew", "bundle", "cargo", "composer", "conda", "dnf", "docker", "dotnet",
    "flutter", "gem", "git", "go", "gradle", "helm", "hg", "just", "kubectl", "make", "mix", "mvn", "nix",
    "npm", "pacman", "pdm", "pip", "pip3", "podman", "poetry", "pnpm", "rake", "rustup", "svn", "swift",
    "systemctl", "terraform", "tox", "uv", "vagrant", "yarn", "yum", "zig", "bun", "deno", "hatch", "nox",
    "rails", "turbo",
)  # fmt: skip
_THREE: Final = (
    "aws", "az", "bun run", "bun x", "cargo run", "conda env", "deno task", "docker compose",
    "docker container", "docker image", "docker network", "docker volume", "gcloud", "gh", "git config",
    "git remote", "git stash", "git submodule", "git worktree", "go mod", "go tool", "helm repo",
    "kubectl config", "kubectl rollout", "npm exec", "npm run", "npm run-script", "openssl", "pip config",
    "pnpm exec", "pnpm run", "poetry env", "poetry run", "podman compose", "rustup target", "uv pip",
    "uv run", "uv tool", "yarn run", "yarn workspace", "python -m", "python3 -m",
)  # fmt: skip

INTERPRETERS: Final = (
    "bash", "dash", "ksh", "node", "perl", "php", "python", "python3", "ruby", "sh", "tsx", "zsh",
)  # fmt: skip
"""Programs that run any code: only one with its file can be approved for good."""

TABLE: Final[dict[str, int]] = {**dict.fromkeys((*_TWO, *INTERPRETERS), 2), **dict.fromkeys(_THREE, 3)}


def prefix(words: Sequence[str]) -> list[str]:
    """The words that name the action: by the longest beginning that the table knows, else the first."""
    for length in (2, 1):
        size = TABLE.get(" ".join(words[:length]))
        if size is not None and len(words) >= length:
            return list(words[:size])
    return list(words[:1])
