"""Judges a command by rules, as the tool does, with paths taken as they are written."""

import os

from holdfast.permission.policy import Policy
from holdfast.permission.shell.read import read
from holdfast.schema.permission import Action, Rule

PROJECT = "/w/project"


def policy(bash: dict[str, Action], outside: Action = "ask") -> Policy:
    """Rules for commands in their order, and one for whatever lies outside."""
    rules = [Rule(permission="bash", pattern=pattern, action=action) for pattern, action in bash.items()]
    return Policy((*rules, Rule(permission="external_directory", pattern="*", action=outside)))


def judge(command: str, rules: Policy) -> Action:
    """What the rules say of a command."""
    reading = read(command, directory=PROJECT, home="/home/me")
    found = rules.strictest(
        "bash",
        [each.text for each in reading.patterns],
        aliases=[alias for each in reading.patterns for alias in each.aliases],
        unclear=("bash", "external_directory") if reading.unclear else (),
    )
    mentioned = [each for each in reading.mentioned if os.path.exists("/" + each.split("/")[1])]  # noqa: PTH110
    paths = [os.path.normpath(each) for each in (*reading.touched, *mentioned)]
    outside = [each for each in paths if not f"{each}/".startswith(f"{PROJECT}/")]
    unclear = ("external_directory",) if reading.paths_unclear else ()
    there = rules.strictest("external_directory", outside, unclear=unclear)
    return max(found, there, key=("allow", "ask", "deny").index)
