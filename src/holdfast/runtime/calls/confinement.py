"""Decides how a command of a call is confined, and asks where the rules or the host want it.

What must stay true: a command runs outside a whole box only by the user's word: `sandbox.mode` off, an
answer, or a rule that the user wrote by name; and commands of an agent that only reads never do so unasked.
"""

from collections.abc import Sequence
from typing import Final

import anyio.to_thread

from holdfast.config.builtin_agents import READ_ONLY
from holdfast.errors import ContextError
from holdfast.location.box.host_level import HostLevel
from holdfast.location.box.policy import BoxPolicy, Mode
from holdfast.permission import from_config
from holdfast.permission.evaluate import last_match
from holdfast.person import directories
from holdfast.runtime.calls.permission_ask import PermissionAsk
from holdfast.runtime.engine.call_box import CallBox
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.engine.run import Run
from holdfast.schema.config import SandboxConfig
from holdfast.schema.request import ToolRef
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.output import ToolDenied, ToolFailure
from holdfast.workspace.box_policy import box_policy

UNCONFINED: Final = "unconfined"
COMMAND: Final = "bash"
HINT: Final = '`"permission": {"unconfined": "allow"}` in your own settings would allow it'


class Confinement:
    """Of the calls of one turn."""

    def __init__(self, run: Run, turn: PreparedTurn, ask: PermissionAsk) -> None:
        self._boxes = run.engine.boxes
        self._stored_at = run.engine.stored_at
        self._turn = turn
        self._ask = ask
        self._settings = turn.workspace.loaded.config.sandbox or SandboxConfig()

    async def box(
        self,
        patterns: Sequence[str],
        *,
        always: Sequence[str],
        metadata: JsonMap,
        unconfined: str | None,
        asks: bool,
        tool: ToolRef,
    ) -> CallBox:
        """The box for one command. `unconfined`: why the model wants it to run outside of one. Without `asks`
        the settings name the command, and nobody is asked about the host.
        """
        mode = self._mode()
        if unconfined is not None:
            if self.only_reads:
                raise ToolDenied(
                    f"The agent {self._turn.agent.name} only reads: it runs nothing outside a box."
                )
            asked = {**metadata, "reason": unconfined}
            await self._ask.ask(UNCONFINED, patterns, always=always, metadata=asked, tool=tool, hint=HINT)
            return await self._made(await self._level(), None)
        if mode is None:
            return await self._made(HostLevel("none", "sandbox.mode is off"), None)
        level = await self._level()
        policy: BoxPolicy | None = None
        try:
            policy = await anyio.to_thread.run_sync(self._policy, mode)
        except ContextError as error:
            level = HostLevel("none", str(error))
        if level.level != "full":
            self._refuse_if_required(level)
            if asks:
                await self._consent(level, patterns, always, metadata, tool)
        return await self._made(level, None if level.level == "none" else policy)

    async def sealed(self) -> bool:
        """Whether a command would run in a whole box without a network."""
        mode = self._mode()
        if mode is None or (await self._level()).level != "full":
            return False
        try:
            return not (await anyio.to_thread.run_sync(self._policy, mode)).network
        except ContextError:
            return False

    @property
    def only_reads(self) -> bool:
        """Whether commands change nothing: those of `plan` and `explore`, and of agents that these start."""
        above = self._turn.policy.above
        return self._turn.agent.name in READ_ONLY or (
            above is not None and above.verdict("edit", "file") == "deny"
        )

    def _mode(self) -> Mode | None:
        if self.only_reads or self._settings.mode == "read-only":
            return "read-only"
        return None if self._settings.mode == "off" else "workspace"

    async def _level(self) -> HostLevel:
        return await self._boxes.level(directories.state())

    def _refuse_if_required(self, level: HostLevel) -> None:
        if self._settings.require:
            raise ToolFailure(f"No command runs here: `sandbox.require` is set, and the box is {level}.")

    async def _consent(
        self,
        level: HostLevel,
        patterns: Sequence[str],
        always: Sequence[str],
        metadata: JsonMap,
        tool: ToolRef,
    ) -> None:
        """The user's consent to a command that this host cannot confine wholly."""
        asked = {**metadata, "reason": f"the box is {level}"}
        if self.only_reads:
            # The rules deny `unconfined` to such an agent; the user may allow this one command.
            await self._ask.ask(COMMAND, patterns, always=(), metadata=asked, tool=tool, hint="", insist=True)
        elif not (self._is_written(COMMAND, patterns) or self._is_written(UNCONFINED, patterns)):
            await self._ask.ask(UNCONFINED, patterns, always=always, metadata=asked, tool=tool, hint=HINT)

    def _is_written(self, permission: str, patterns: Sequence[str]) -> bool:
        """Whether the user's own files allow it by name."""
        loaded, home = self._turn.workspace.loaded, str(self._turn.workspace.places.home)
        rules = from_config.rules(loaded.own_permission, home)
        found = [last_match(permission, pattern, rules) for pattern in patterns]
        return bool(found) and all(
            rule is not None and rule.permission == permission and rule.action == "allow" for rule in found
        )

    def _policy(self, mode: Mode) -> BoxPolicy:
        return box_policy(
            self._turn.workspace.places,
            self._settings,
            mode,
            stored_at=self._stored_at,
            owner=self._turn.session.id,
        )

    async def _made(self, level: HostLevel, policy: BoxPolicy | None) -> CallBox:
        places, network = self._turn.workspace.places, None
        if policy is not None and not policy.network and level.level == "full":
            try:
                network = await self._boxes.network(self._turn.session.id)
            except ContextError as error:
                raise ToolFailure(f"{error}; the command did not run.") from error
        box = CallBox(
            level,
            policy,
            home=places.home,
            worktree=places.worktree,
            directory=places.directory,
            boxes=self._boxes if level.level == "full" else None,
            network=network,
            may_leave=not self.only_reads,
        )
        await box.prepare()
        return box
