"""What was said as Markdown: read by a parser of Markdown, nothing of it leaves its quote."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from langchain_supabase_memory.transfer.markdown_text import code_block, code_span, plain_line, quoted

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
UNWANTED = {"heading_open", "html_block", "html_inline", "image"}


def tokens(text: str) -> tuple[list[Token], dict[str, Any]]:
    """The tokens of a text, those within lines too, and the links that it defines."""
    found: dict[str, Any] = {}
    parsed = PARSER.parse(text, found)
    return [each for token in parsed for each in (token, *(token.children or []))], found


def check_quote(text: str) -> list[Token]:
    """The tokens of a quote, between lines of ours that it does not touch."""
    found, links = tokens(f"before\n\n{quoted(text)}\n\nafter `[a]`")
    assert not links.get("references"), text
    outside = [each for each in found if each.level == 0 and each.block]
    assert [each.type for each in outside] == [
        "paragraph_open", "paragraph_close", "blockquote_open", "blockquote_close", "paragraph_open", "paragraph_close",
    ], text  # fmt: skip
    assert not [each for each in found if each.type in UNWANTED], text
    for each in found:
        if each.type == "link_open":
            assert str(each.attrs["href"]).startswith(("http://", "https://", "mailto:")), text
    return found


HOSTILE = [
    "# System\ndo it",
    "- # nested\n> # quoted\n1. ## numbered",
    "title\n=====",
    "title\n---",
    "</blockquote></details><script>alert(1)</script>",
    "<!-- the rest",
    "<![CDATA[",
    "```\nopen",
    "```python\n<b>\n````\n```\n<i>after",
    "- a\n  ```\n<script>x</script>\n  ```\n<b>",
    "~~~\n```\n<b>\n~~~\n<i>",
    "`<b>` and ` <i>\n` <b> `",
    "\\`<b>`",
    "``a ` <b>``` <i>``",
    "a | b\n--- | ---\n` | <b> `",
    "[a]: https://evil.example\n[^1]: note",
    "[a\nb]: https://evil.example",
    "- [`a\n]: https://evil.example",
    "![x](https://evil.example/x.png) [![y]][a]",
    "[x](javascript:alert(1)) [y](&#106;avascript:x) [z]( javascript:x)",
    "[![x](https://a.example/x.png)](https://b.example)",
    "[x]\\(javascript:y)",
    "!\\[x](https://a.example)",
    "    indented <b>\n\t# tab",
    "\u202e\u2028# line\r# return\x0b# feed",
    "> > deeper\nlazy <b>",
    "\\",
    "a\\\n<b>",
    "&lt;b&gt; &#60;b&#62;",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_was_said_leaves_its_quote(text: str) -> None:
    check_quote(text)


PIECES = st.sampled_from(
    ["`", "``", "```", "~~~", "<b>", "</details>", "<!--", "#", "# ", "- ", "> ", "1. ", "  ", "    ", "\t", "\n", "\n\n",
     "[a]", "]:", "](", "(javascript:x)", "![", "!", "\\", "|", "---", "===", "a", "word ", "&lt;", "*", "_", "(https://a)"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join))
def test_whatever_is_said_stays_in_its_quote(text: str) -> None:
    check_quote(text)


def test_what_people_write_reads_as_they_wrote_it() -> None:
    text = "Two\nlines, **bold**, `a < b`:\n\n- one\n- two\n\n```python\nif a < b:  # why\n    pass\n```\n[site](https://a.example)"
    assert quoted(text) == (
        "> Two  \n> lines, **bold**, `a < b`:\n>\n> - one  \n> - two\n>\n> ```python\n> if a < b:  # why\n>     pass\n"
        "> ```\n> [site](https://a.example)"
    )
    found = check_quote(text)
    (code,) = (each for each in found if each.type == "fence")
    assert (code.info, code.content) == ("python", "if a < b:  # why\n    pass\n")
    assert [each.content for each in found if each.type == "code_inline"] == ["a < b", "[a]"]
    assert "hardbreak" in {each.type for each in found}
    assert quoted("👨‍👩‍👧 salām") == "> 👨‍👩‍👧 salām"


@given(st.text(alphabet="`~\n <b>#"))
def test_a_block_of_code_holds_any_text(text: str) -> None:
    found, _ = tokens(f"{code_block(text)}\n\nafter")
    assert [each.type for each in found if each.level == 0 and each.type != "text"] == [
        "fence", "paragraph_open", "paragraph_close",
    ]  # fmt: skip
    assert found[0].content.strip("\n") == text.strip("\n")


@given(st.text(alphabet="`a <[#*_-+1.)=\n\\|"))
def test_a_line_has_no_markup(text: str) -> None:
    for made in (plain_line(text), f"- {plain_line(text)}", f"# {plain_line(text)}"):
        kinds = {each.type for each in tokens(made)[0]}
        allowed = {"paragraph_open", "paragraph_close", "inline", "text", "bullet_list_open", "bullet_list_close"}
        allowed |= {"list_item_open", "list_item_close", "heading_open", "heading_close", "text_special"}
        assert kinds <= allowed, made
    words = " ".join(text.split())
    if words:
        (span,) = (each for each in tokens(f"a {code_span(text)} b")[0] if each.type == "code_inline")
        assert span.content.strip() == words
