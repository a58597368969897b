"""Pages as text, by the real converter in its process."""

import sys
from pathlib import Path

import pytest

from holdfast.tools.web_page import convert as converting
from holdfast.tools.web_page.convert import convert
from holdfast.tools.web_page.strip import strip

PAGE = """<html><head><title>T</title><style>p{color:red}</style><script>alert(1)</script></head><body>
<h1>Head</h1><p>one <b>two</b> <a href="../x">three</a></p><ul><li>a<li>b</ul>
<pre><code class="language-py">x = 1
  y</code></pre><img src="data:image/png;base64,AAAA" alt="a cat"></body></html>"""


async def test_markdown() -> None:
    """Headings, emphasis, lists and code; links seen from where the page lies; no scripts, no data."""
    assert await convert(PAGE, form="markdown", base="https://h.org/a/b/") == (
        "# Head\n\none **two** [three](https://h.org/a/x)\n\n- a\n- b\n\n```py\nx = 1\n  y\n```\n\na cat"
    )


async def test_plain_text() -> None:
    """The words alone."""
    text = await convert(PAGE, form="text", base="https://h.org/")
    assert "one two three" in text
    assert not {"*", "#", "alert", "color"} & set(text.replace("\n", " ").split(" "))


async def test_a_page_that_is_given_up_is_stripped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A converter that dies, or cannot be started, costs the page its form and not its words."""
    dies = tmp_path / "dies.py"
    dies.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGALRM)\n")
    for command in ((sys.executable, str(dies)), (str(tmp_path / "missing"),)):
        monkeypatch.setattr(converting, "_COMMAND", command)
        assert await convert(PAGE, form="markdown", base="") == strip(PAGE)


def test_stripping() -> None:
    """Tags go, breaks stay, signs are read; what is never shown is left out, also when it does not end."""
    assert strip(PAGE) == "T\nHead\none two three\na\nb\nx = 1\ny"
    assert strip("a &lt; b<script>x</SCRIPT> c<style>never") == "a < b c"
    assert strip("a < b") == "a"
    assert strip("") == ""


@pytest.mark.ci
@pytest.mark.parametrize("unit", ["<", "<div>", "&", "<a href=x>", "<script>", "<!--", "word "])
def test_stripping_takes_one_pass(unit: str) -> None:
    """Megabytes of what slows parsers down are no trouble: a second try of ten times the size ends too."""
    assert len(strip(unit * 500_000)) <= len(unit) * 500_000
