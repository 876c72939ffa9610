"""Numbers as people write them: "1,000", "1.000 euros", "1 000", "1'000", "4,50", "1.5k", "two million", "fifty"."""

import math
import re
from typing import NamedTuple

# Each currency: its other names, its codes and its sign.
_COINS = {
    "euro": "euros eur €",
    "dollar": "dollars bucks usd $",
    "pound": "pounds quid gbp £",
    "yen": "jpy ¥",
    "franc": "francs chf",
    "rupee": "rupees inr ₹",
    "krone": "kroner nok dkk",
    "krona": "kronor sek",
    "zloty": "zlotys pln",
}
COINS = {name: coin for coin, names in _COINS.items() for name in (coin, *names.split())}
_WRITE_DOTS = ("euro", "krone")  # 1.000 of these are a thousand; of no other is it known
_SIGNS = "".join(name for name in COINS if not name.isalpha())
_CODES = "|".join(name for name in COINS if len(name) == 3 and COINS[name] != name)
_TIMES = {"k": 1e3, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "mio": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9}

_ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_IN_WORDS = {
    **{word: float(number) for number, word in enumerate((*_ONES, *_TEENS), 1)},
    **{word: 10.0 * number for number, word in enumerate(_TENS, 2)},
    "a": 1.0,
    "an": 1.0,
}
_SMALL = rf"(?:(?:{'|'.join(_TENS)})(?:[\s-](?:{'|'.join(_ONES)})\b)?|{'|'.join((*_TEENS, *_ONES))})"
_WORDS = rf"(?:(?:an?|{_SMALL})[\s-](?:hundred|thousand|million)|{_SMALL})(?![\w-])"

_SPACE = " \u00a0\u2009\u202f"
_DIGITS = rf"[-\u2212]?(?>\d{{1,3}}(?:[{_SPACE}]\d{{3}})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,'’]\d+)*)(?!(?:st|nd|rd|th)\b)"
# What a number may be written like, without its thousands' separator; "1.000" stands here only for a thousand.
_GROUPED = (
    (r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|[1-9]\d?(?:,\d\d)+,\d{3}", ","),
    (rf"[1-9]\d{{0,2}}(?:[{_SPACE}'’]\d{{3}})+(?:[.,]\d+)?", rf"[{_SPACE}'’]"),
    (r"[1-9]\d{0,2}(?:(?:\.\d{3}){2,}(?:,\d+)?|\.\d{3},\d+)", r"\."),
)
_SINGLE = r"\d+|0[.,]\d+|\d+\.(?!\d{3}\Z)\d+|\d{4,}\.\d{3}|\d+,\d\d?"
_MAY_BE_A_THOUSAND = re.compile(r"[1-9]\d{0,2}\.\d{3}")

# Words behind a number that are never a unit, nor a field's name.
_NO_UNIT = re.compile(
    "and|or|nor|but|yet|than|with|without|in|on|at|by|of|near|for|not|no|that|which|who|whose|where|from|to|per|each|only|an?|the|"
    "please|if|when|max|maximum|minimum|tops|total|altogether|under|over|above|below|between|before|after|since|until|"
    "is|are|was|has|have|as"
)
_UNITS = {"%": "percent", "per cent": "percent", "m2": "sqm", "m²": "sqm", "min": "minutes"}


def number_pattern(group: str = "", goes_on: str = r"\s?[-\u2013\u2014/:×]\s?\d\S*") -> str:
    """A number with its currency, its unit, and in `rest` what makes something else of it: "5-9", "3:30", "4x4"."""
    return (
        rf"(?P<coin{group}>[{_SIGNS}]\s?|(?:{_CODES})\s?)?(?P<number{group}>{_DIGITS}|{_WORDS})"
        rf"(?P<times{group}>\s?(?:{'|'.join(_TIMES)})(?!\w))?(?P<rest{group}>{goes_on}|(?!k?m[23]\b)[^\W\d_]+\d\w*)?"
        rf"(?:\s?-?(?P<unit{group}>[{_SIGNS}%]|°[CF]?(?!\w)|per\s?cent\b|[^\W\d_]+[²³23]?(?!\w)))?"
    )


class Written(NamedTuple):
    """A number in a text and what it counts, "" where no word says it; `number_end` is where it ends without that.
    number: NaN where it may be another."""

    number: float
    unit: str
    end: int
    number_end: int


def written(match: re.Match[str], group: str = "", coin: str = "") -> Written:
    """What a match of `number_pattern` says. coin: its currency, where that stands elsewhere."""
    before, unit = ((match[f"{name}{group}"] or "").strip().lower() for name in ("coin", "unit"))
    number_end = max(match.end(f"{name}{group}") for name in ("number", "times", "rest"))
    end = match.end(f"unit{group}")
    is_million = bool(before) and unit == "m"  # "€2m"
    unit = COINS[before] if before else unit_of(unit)
    if before or not unit:
        end = end if is_million else number_end
    if match[f"rest{group}"]:
        return Written(math.nan, unit, end, number_end)
    number = number_of(match[f"number{group}"], unit if unit in _COINS else coin)
    return Written(number * (1e6 if is_million else times_of(match, group)), unit, end, number_end)


def unit_of(word: str) -> str:
    """What the word behind a number says that it counts; "" where it says nothing of it.

    >>> [unit_of(word) for word in ("rooms", "€", "min", "please")]
    ['rooms', 'euro', 'minutes', '']
    """
    word = word.lower()
    if not word or _NO_UNIT.fullmatch(word):
        return ""
    return COINS.get(word, "degree" if word.startswith("°") else _UNITS.get(word, word))


def times_of(match: re.Match[str], group: str = "") -> float:
    """What a number is multiplied by: 1,000 of "5k"."""
    return _TIMES.get((match[f"times{group}"] or "").strip().lower(), 1.0)


def number_of(text: str, coin: str = "") -> float:
    """The number that a text of digits or words says; NaN where it may be two, or is none. coin: its currency.

    >>> [number_of(text) for text in ("1,000.50", "1.000,50", "1 000", "1'000", "4,50", "1,00,000", "1.000.000")]
    [1000.5, 1000.5, 1000.0, 1000.0, 4.5, 100000.0, 1000000.0]
    >>> number_of("1.000", "euro"), number_of("1.000", "dollar"), number_of("0.500"), number_of("1.00.0")
    (1000.0, nan, 0.5, nan)
    >>> number_of("twenty-five"), number_of("a hundred"), number_of("-5")
    (25.0, 100.0, -5.0)
    """
    if text[-1].isalpha():
        *small, last = re.split(r"[\s-]", text.lower())
        times = _TIMES.get(last)
        return sum(_IN_WORDS[word] for word in (small if times else (*small, last))) * (times or 1.0)
    sign, digits = (-1.0, text[1:]) if text[0] in "-\u2212" else (1.0, text)
    if coin in _WRITE_DOTS and _MAY_BE_A_THOUSAND.fullmatch(digits):
        return sign * float(digits.replace(".", ""))
    for shape, separator in _GROUPED:
        if re.fullmatch(shape, digits):
            return sign * float(re.sub(separator, "", digits).replace(",", "."))
    return sign * float(digits.replace(",", ".")) if re.fullmatch(_SINGLE, digits) else math.nan
