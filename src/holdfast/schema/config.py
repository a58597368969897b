"""The settings, as they are written in files: OpenCode's keys, which a project set up for it already has.

Keys are spelled as on the wire. Unknown keys are no error here; whoever reads a file warns about them. What
must stay true: `holdfast.schema.json` is made from these types.
"""

from typing import Annotated, Any, Literal

import msgspec

from holdfast.schema.permission import Action, Rule
from holdfast.schema.program_entry import CheckEntry, FormatterEntry, LspEntry, McpEntry
from holdfast.schema.provider_entry import ProviderEntry
from holdfast.schema.wire import Count, JsonMap, Num

Positive = Annotated[int, msgspec.Meta(gt=0)]

PermissionConfig = Action | dict[str, Action | dict[str, Action]] | list[Rule]
"""An action for everything, actions by key (and pattern), or rules in order."""

Color = Annotated[
    str, msgspec.Meta(pattern="^(#[0-9a-fA-F]{6}|primary|secondary|accent|success|warning|error|info)$")
]
"""`#rrggbb`, or a name that a theme has a colour for."""

AgentMode = Literal["subagent", "primary", "all"]


class Settings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A section of the settings; what is None was not set."""


class AgentConfig(Settings, frozen=True, kw_only=True):
    """Settings of an agent. Keys beside these are options for the model."""

    name: str | None = None
    description: str | None = None
    mode: AgentMode | None = None
    model: str | None = None
    variant: str | None = None
    temperature: Num | None = None
    top_p: Num | None = None
    steps: Positive | None = None
    prompt: str | None = None
    permission: PermissionConfig | None = None
    tools: dict[str, bool] | None = None
    options: JsonMap | None = None
    color: Color | None = None
    hidden: bool | None = None
    disable: bool | None = None


class CommandConfig(Settings, frozen=True, kw_only=True):
    """A command: a template, and who carries it out."""

    template: str
    name: str | None = None
    description: str | None = None
    agent: str | None = None
    model: str | None = None
    variant: str | None = None
    subtask: bool | None = None


class CompactionConfig(Settings, frozen=True, kw_only=True):
    auto: bool | None = None
    prune: bool | None = None
    tail_turns: Count | None = None
    preserve_recent_tokens: Count | None = None
    reserved: Count | None = None
    max_tokens: Positive | None = None
    max_messages: Positive | None = None


class ToolOutputConfig(Settings, frozen=True, kw_only=True):
    max_lines: Positive | None = None
    max_bytes: Positive | None = None


class ImageConfig(Settings, frozen=True, kw_only=True):
    auto_resize: bool | None = None
    max_width: Positive | None = None
    max_height: Positive | None = None
    max_base64_bytes: Positive | None = None


class AttachmentConfig(Settings, frozen=True, kw_only=True):
    image: ImageConfig | None = None


class ServerConfig(Settings, frozen=True, kw_only=True):
    port: Positive | None = None
    hostname: str | None = None
    mdns: bool | None = None
    mdns_domain: str | None = msgspec.field(default=None, name="mdnsDomain")
    cors: list[str] | None = None


class SkillsConfig(Settings, frozen=True, kw_only=True):
    paths: list[str] | None = None
    urls: list[str] | None = None


class WatcherConfig(Settings, frozen=True, kw_only=True):
    ignore: list[str] | None = None


class EnvironmentConfig(Settings, frozen=True, kw_only=True):
    """Variables of the user's environment that commands do not see, besides the keys of providers; `keep`
    gives them one of those after all. Names, or wildcards (`*_SECRET`).
    """

    hide: list[str] | None = None
    keep: list[str] | None = None


class ExperimentalConfig(Settings, frozen=True, kw_only=True):
    disable_paste_summary: bool | None = None
    batch_tool: bool | None = None
    open_telemetry: bool | None = msgspec.field(default=None, name="openTelemetry")
    primary_tools: list[str] | None = None
    continue_loop_on_deny: bool | None = None
    message_summary: bool | None = None
    mcp_timeout: Positive | None = None
    policies: list[JsonMap] | None = None


Recovery = Literal["auto", "ask", "off"]
SandboxMode = Literal["workspace", "read-only", "off"]


class SandboxConfig(Settings, frozen=True, kw_only=True):
    """The box around commands of agents. Paths are absolute or begin with `~/`."""

    mode: SandboxMode | None = None
    """Where commands may write: in the worktree (the default), nowhere, or wherever the user may."""
    network: bool | None = None
    write: list[str] | None = None
    """Folders beside the worktree that commands may write to."""
    hide: list[str] | None = None
    """Files and folders that commands must not see, beside the known places of secrets."""
    reveal: list[str] | None = None
    """Known places of secrets that commands may read after all."""
    caches: list[str] | None = None
    """Caches that commands read, and seem to write; in place of those of the known package managers."""
    sockets: list[str] | None = None
    """Named sockets that commands may connect to. A container engine's is worth as much as root."""
    require: bool | None = None
    """Whether no command runs where this host cannot build the whole box, whatever the permissions say."""


class Config(Settings, frozen=True, kw_only=True):
    """Every setting. `mcp`, `lsp` and `formatter` entries are read by those who use them.

    Entries hold keys and passwords, so a repr shows only which settings there are.
    """

    model: str | None = None
    small_model: str | None = None
    default_agent: str | None = None
    subagent_depth: Count | None = None
    agent: dict[str, AgentConfig] | None = None
    command: dict[str, CommandConfig] | None = None
    permission: PermissionConfig | None = None
    instructions: list[str] | None = None
    skills: SkillsConfig | None = None
    references: dict[str, str | JsonMap] | None = None
    snapshot: bool | None = None
    snapshot_budget: Positive | None = None
    """How many MiB the snapshots of one worktree may take; the oldest go first."""
    backup: bool | None = None
    """Whether the user's SQLite store is backed up once a day; only the user's own settings are asked."""
    recovery: Recovery | None = None
    """What a process does with work that the loss of its lease has cut off: goes on with it (the default),
    tells that it waits for `resume`, or leaves it alone."""
    share: Literal["manual", "auto", "disabled"] | None = None
    compaction: CompactionConfig | None = None
    tool_output: ToolOutputConfig | None = None
    sandbox: SandboxConfig | None = None
    attachment: AttachmentConfig | None = None
    provider: dict[str, ProviderEntry] | None = None
    disabled_providers: list[str] | None = None
    enabled_providers: list[str] | None = None
    mcp: dict[str, McpEntry] | None = None
    checks: dict[str, CheckEntry] | None = None
    """Programs that look at files which an agent has changed; what they find goes to the model."""
    formatter: bool | dict[str, FormatterEntry] | None = None
    lsp: bool | dict[str, LspEntry] | None = None
    plugin: list[str | tuple[str, dict[str, Any]]] | None = None
    shell: str | None = None
    """The shell of the user's own commands (`sessions.shell`); an agent's run in bash."""
    environment: EnvironmentConfig | None = None
    username: str | None = None
    timezone: str | None = None
    """The zone of the date that the model is told; without it, that of this machine."""
    watcher: WatcherConfig | None = None
    server: ServerConfig | None = None
    log_level: Literal["DEBUG", "INFO", "WARN", "ERROR"] | None = msgspec.field(default=None, name="logLevel")
    experimental: ExperimentalConfig | None = None

    def __repr__(self) -> str:
        names = [name for name in self.__struct_fields__ if getattr(self, name) is not None]
        return f"Config({', '.join(names)})"


NO_EFFECT_YET = (
    "server",
    "share",
    "subagent_depth",
    "username",
)
"""Settings that are read and checked, and that nothing uses yet."""
