"""What tests about project share."""

import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    """Run git as somebody."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.invalid", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder, with its time and content."""
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }
