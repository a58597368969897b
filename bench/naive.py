"""The same request as most tools would lay it out, to compare with. Pure.

One system text, rendered fresh each turn with the date, the place and the instruction files; no word to the
model about what changed; tools in the order in which they were registered; marks on the last two messages.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.provider.request.request import CacheMarks, Request, SystemUpdate


def layout(request: Request, *, date: str, rules: str | None, tools: Sequence[str]) -> Request:
    """The request in that layout, with the world as it was then. One beside the conversation stays."""
    order = {name: number for number, name in enumerate(tools)}
    messages = tuple(each for each in request.messages if not isinstance(each, SystemUpdate))
    *texts, baseline = request.system
    place = baseline.partition("\n\n")[0]
    fresh = (*texts, place, f"Today's date is {date}.", *([] if rules is None else [rules]))
    return last_two_marked(
        replace(
            request,
            tools=tuple(sorted(request.tools, key=lambda tool: order.get(tool.name, len(order)))),
            system=("\n\n".join(fresh),),
            messages=messages,
        )
    )


def last_two_marked(request: Request) -> Request:
    """The request with marks on its last two messages and nowhere else."""
    count = len(request.messages)
    return replace(request, marks=CacheMarks(messages=tuple(range(max(0, count - 2), count))))
