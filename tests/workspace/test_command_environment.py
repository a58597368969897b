"""What commands see of the user's environment."""

from holdfast.provider.accounts.resolve import Providers
from holdfast.provider.catalog import snapshot
from holdfast.schema.config import EnvironmentConfig
from holdfast.schema.provider_entry import ProviderEntry
from holdfast.workspace.command_environment import visible

KEYS = frozenset(("OPENAI_API_KEY", "GITHUB_TOKEN"))


def test_keys_and_our_own_variables_are_not_seen() -> None:
    """Nor what leads `cd` elsewhere; everything else is."""
    given = {
        "PATH": "/bin", "OPENAI_API_KEY": "k", "GITHUB_TOKEN": "t", "HOLDFAST_X": "1", "OPENCODE_Y": "1",
        "CDPATH": "/", "OLDPWD": "/", "EDITOR": "vi", "DEPLOY_SECRET": "s",
    }  # fmt: skip
    assert visible(given, KEYS, None) == {"PATH": "/bin", "EDITOR": "vi", "DEPLOY_SECRET": "s"}


def test_the_settings_hide_more_and_give_a_key_back() -> None:
    """By name or wildcard; what is hidden is not given back, and ours never is."""
    given = {"A_SECRET": "s", "B": "b", "GITHUB_TOKEN": "t", "OPENAI_API_KEY": "k", "HOLDFAST_X": "1"}
    settings = EnvironmentConfig(hide=["*_SECRET", "B"], keep=["GITHUB_*", "B", "HOLDFAST_X"])
    assert visible(given, KEYS, settings) == {"GITHUB_TOKEN": "t"}


def test_every_provider_s_keys_are_known() -> None:
    """Of the whole catalogue and of the settings; what says only where a service is, is no key."""
    entries = {"own": ProviderEntry(env=("OWN_KEY", "OWN_ENDPOINT"))}
    names = Providers((snapshot.bundled(),), entries=entries).key_variables()
    assert names >= {
        "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID",
        "GOOGLE_APPLICATION_CREDENTIALS", "OWN_KEY",
    }  # fmt: skip
    assert not names & {"AWS_REGION", "OWN_ENDPOINT", "GOOGLE_VERTEX_PROJECT", "PATH", "HOME"}
