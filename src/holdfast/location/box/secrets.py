"""Where programs keep keys, tokens and passwords of a user, relative to the home directory.

No list of such places is complete; `sandbox.hide` adds to it, and `sandbox.reveal` takes away. Folders are
named whole where nearly everything in them is a secret.
"""

from typing import Final

IN_HOME: Final = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".oci",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".vault-token",
    ".git-credentials",
    ".password-store",
    ".terraform.d/credentials.tfrc.json",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/git/credentials",
    ".config/rclone",
    ".config/op",
    ".config/1Password",
    ".config/Bitwarden",
    ".config/keepassxc",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".cache/mozilla",
    ".cache/google-chrome",
    ".cache/chromium",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".mysql_history",
)

LOOKUPS: Final = ("/var/lib/sss/pipes/nss", "/run/systemd/userdb")
"""Sockets by which a machine finds the names of users; no other machine is reached through them."""

CACHES: Final = (
    ".cache",
    ".npm",
    ".cargo/registry",
    ".cargo/git",
    "go/pkg/mod",
    ".gradle/caches",
    ".m2/repository",
)
"""Caches of package managers, overlaid where they are."""
