"""Texts of a column as numbers, truth values or days; the marks that stand for a gap."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from selfview.tables.frames import Values, texts_of

GAPS = frozenset(("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "nat", "?", "-"))
_LONGEST = max(map(len, GAPS))
_TRUTH = {
    **dict.fromkeys(("true", "yes", "y", "t"), 1.0),
    **dict.fromkeys(("false", "no", "n", "f"), 0.0),
}
_DAY_FORMS = {
    "%d.%m.%Y": "day.month.year",
    "%d/%m/%Y": "day/month/year",
    "%m/%d/%Y": "month/day/year",
    "%Y/%m/%d": "year/month/day",
    "%d-%m-%Y": "day-month-year",
    "%d.%m.%y": "day.month.year",
    "%d/%m/%y": "day/month/year",
    "%m/%d/%y": "month/day/year",
    "%d %b %Y": "day month year",
    "%d %B %Y": "day month year",
    "%d-%b-%Y": "day-month-year",
    "%d-%b-%y": "day-month-year",
    "%b %d, %Y": "month day, year",
    "%B %d, %Y": "month day, year",
}
_HOURS = (" %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
COMPACT, MONTHS = "%Y%m%d", "%Y-%m"
TIMES = ("%H:%M", "%H:%M:%S")
# How dates may be written, and how that is called. Of two that fit, the first is taken.
DATE_FORMS = {
    "iso": "year-month-day",
    **{day + time: words for day, words in _DAY_FORMS.items() for time in ("", *_HOURS)},
    COMPACT: "yearmonthday",
    MONTHS: "year-month",
    **dict.fromkeys(TIMES, "time of day"),
}
_SECONDS_A_DAY = 86_400
# Numbers as spreadsheets show them: € 1,234.50, -$3, 12 %.
_AMOUNT = re.compile(
    r"([+-]?)\s?[€$£¥]?\s?((?:\d{1,3}(?:,\d{3})+|\d{1,300})(?:\.\d{1,300})?)\s?[€$£¥%]?", re.ASCII
)


def without_gaps(texts: Values) -> Values:
    """The texts without blanks at their ends, None where one stands for a gap."""
    found = np.empty(len(texts), object)
    found[:] = [_stripped(text) for text in texts]
    return found


def _stripped(text: str | None) -> str | None:
    if text is None:
        return None
    text = text.strip()
    return None if len(text) <= _LONGEST and text.casefold() in GAPS else text


def as_texts(values: Values) -> Values:
    """Values of any kind as texts, None for a gap."""
    if values.dtype.kind == "O":
        return without_gaps(values)
    if values.dtype.kind == "M":
        return texts_of(None if np.isnat(v) else str(v) for v in values)
    return texts_of(values.tolist() if values.dtype.kind != "V" else [None] * len(values))


def as_numbers(values: Values) -> NDArray[np.float64]:
    """Numbers, NaN for a gap and infinity for what is no number."""
    if values.dtype.kind == "O":
        try:  # nothing but numbers: a tenth of the time
            if "_" not in "".join(values):  # Python reads 1_000 as a number
                return values.astype(np.float64)
        except (TypeError, ValueError):
            pass
        return np.array([_number(text) for text in without_gaps(values)], np.float64)
    if values.dtype.kind == "M":
        return as_days(values, "iso")
    if values.dtype.kind == "V":
        return np.full(len(values), np.inf)
    return values.astype(np.float64)


def _number(text: str | None) -> float:
    if text is None:
        return math.nan
    try:
        number = float(text)
    except ValueError:
        amount = _AMOUNT.fullmatch(text)
        # 1,250 alone may be a thousand or one and a quarter: no number is better than a wrong one.
        if amount and not text.lstrip("+-").replace(",", "", 1).isdigit():
            return float(amount[1] + amount[2].replace(",", ""))
        return {"true": 1.0, "false": 0.0}.get(text.casefold(), math.inf)
    # Python reads 1_000 as a number; a NaN is written as a gap is.
    return math.inf if "_" in text or number != number else number


def as_truth(values: Values) -> NDArray[np.float64]:
    """1 for true, 0 for false, NaN for a gap and infinity for anything else."""
    if values.dtype.kind != "O":
        numbers = as_numbers(values)
        return np.where(np.isnan(numbers) | np.isin(numbers, (0, 1)), numbers, np.inf)
    words = without_gaps(values)
    return np.array(
        [math.nan if w is None else {**_TRUTH, "1": 1.0, "0": 0.0}.get(w.casefold(), math.inf)
         for w in words], np.float64,
    )  # fmt: skip


def are_truth_words(distinct: Sequence[str]) -> bool:
    """Whether the values are the two words of a pair such as yes and no."""
    words = {text.casefold() for text in distinct}
    pairs = ({"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"})
    return len(words) == 2 and any(words == pair for pair in pairs)


def as_days(values: Values, form: str) -> NDArray[np.float64]:
    """Days since 1970, NaN for a gap and infinity for what is no date of this form."""
    if values.dtype.kind == "M":
        seconds = values.astype("datetime64[us]").astype(np.int64) / 1e6
        return np.where(np.isnat(values), np.nan, seconds / _SECONDS_A_DAY)
    texts = as_texts(values)
    known = {text: _day(text, _parser(form)) for text in set(texts.tolist()) - {None}}
    return np.array([math.nan if text is None else known[text] for text in texts], np.float64)


def date_form(distinct: Sequence[str]) -> str | None:
    """The first form that all these texts are written in."""
    if not any(c.isdigit() for c in distinct[0][:40]):
        return None
    for form in DATE_FORMS:
        parse = _parser(form)
        if all(math.isfinite(_day(text, parse)) for text in distinct):
            return form
    return None


def _parser(form: str) -> Callable[[str], datetime]:
    if form == "iso":
        return _iso
    if form == COMPACT:
        return _compact
    if form in TIMES:
        return lambda text: _time(text, form)
    return lambda text: datetime.strptime(text, form)


def _iso(text: str) -> datetime:
    if len(text) < 8 or text[4] != "-":  # 20200131 is a number
        raise ValueError("no date")
    return datetime.fromisoformat(text)


def _compact(text: str) -> datetime:
    digits = text.removesuffix(".0")  # as pandas writes whole numbers beside gaps
    if len(digits) != 8 or digits[:2] not in ("19", "20"):
        raise ValueError("no date")
    return datetime.strptime(digits, COMPACT)


def _time(text: str, form: str) -> datetime:
    if text[-3:-2] != ":":  # 3:2 is a score
        raise ValueError("no time")
    return datetime.strptime(f"1970-01-01 {text}", f"%Y-%m-%d {form}")


def _day(text: str, parse: Callable[[str], datetime]) -> float:
    try:
        moment = parse(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.timestamp() / _SECONDS_A_DAY
    except (ValueError, OverflowError):
        return math.inf
