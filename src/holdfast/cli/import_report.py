"""The report of an import, as a user or a program reads it."""

from typing import TYPE_CHECKING

import click

from holdfast.cli.output import clean, note, print_json

if TYPE_CHECKING:
    from holdfast.store.exchange.portable.report import ImportReport

SHOWN_MAX = 20


def print_report(report: "ImportReport", form: str) -> None:
    """Counts by kind, then what stayed behind and why."""
    if form == "json":
        print_json(report)
        return
    for kind, counts in report.counts.items():
        facts = (
            (counts.new, "new"),
            (counts.updated, "updated"),
            (counts.unchanged, "unchanged"),
            (counts.different, "different, left as they are here"),
            (counts.skipped, "skipped"),
        )
        counted = ", ".join(f"{count} {word}" for count, word in facts if count)
        click.echo(f"{kind:<10} {counted or 'nothing'}")
    for text in report.notes[:SHOWN_MAX]:
        note(f"note: {clean(text)}")
    for skipped in report.skipped[:SHOWN_MAX]:
        note(f"skipped {clean(skipped.what)} at {clean(skipped.where)}: {clean(skipped.why)}")
    beyond = len(report.skipped[SHOWN_MAX:]) + report.skipped_beyond
    if beyond:
        note(f"… and {beyond} more; --format json names them")
    if not report.counts:
        note(f"{clean(report.source)} holds nothing to import.")
