"""Posts of newsgroups without header, quotes and signature, by scikit-learn's rules."""

from __future__ import annotations

import re

_QUOTE = re.compile(r"(writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>)")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]*:|[ \t]")


def looks_like_post(text: str) -> bool:
    """Whether the text starts with a news header: lines of ``Name: value``, From: among them."""
    header = text.partition("\n\n")[0].splitlines()
    return any(line.startswith("From:") for line in header) and all(map(_HEADER.match, header))


def strip_post(text: str) -> str:
    """The post's own words, as scikit-learn's remove=("headers", "footers", "quotes")."""
    body = text.partition("\n\n")[2]
    return _strip_quotes(_strip_footer(body))


def _strip_footer(text: str) -> str:
    lines = text.strip().split("\n")
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].strip().strip("-") == "":
            return "\n".join(lines[:number]) if number > 0 else text
    return text


def _strip_quotes(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not _QUOTE.search(line))
