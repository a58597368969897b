"""The process that converts one page: HTML on its input, text on its output.

`python -P -m holdfast.tools.web_page.convert_process markdown|text BASE_URL`. It is a process because a page
is hostile material: the converter holds the interpreter while it works, takes seconds and a gigabyte for some
pages of 5 MB, and was seen to stand still beside another thread. What must stay true: it ends by itself,
whatever becomes of its parent, and it takes bounded memory.
"""

import resource
import signal
import sys
from typing import Final

SECONDS_MAX: Final = 10
MEMORY_BYTES_MAX: Final = 2 << 30
DEPTH_MAX: Final = 500
"""Elements inside each other; what lies deeper is left out, since the converter recurses."""


def main() -> None:
    """Convert, within the limits."""
    signal.alarm(SECONDS_MAX)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    from html_to_markdown import ConversionOptions, convert

    form, base = sys.argv[1], sys.argv[2]
    options = ConversionOptions(
        output_format="plain" if form == "text" else "markdown",
        base_url=base,
        extract_metadata=False,
        inline_data_media="alt_text_only",
        max_depth=DEPTH_MAX,
    )
    page = sys.stdin.buffer.read().decode("utf-8", "replace")
    sys.stdout.buffer.write((convert(page, options).content or "").encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
