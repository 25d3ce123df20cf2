"""The words of a text, in any script: with their vowel signs, and where there are no spaces, in pairs of letters."""

import re
import unicodedata
from itertools import pairwise

SPACELESS = (  # blocks of scripts that write no spaces between words
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese kana
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese
)
MARKS = "".join(map(chr, (c for c in range(0x300, 0xFFFF) if unicodedata.category(chr(c)) in ("Mn", "Mc"))))
LETTER = rf"[\w{MARKS}]"  # for Python, the vowel signs of Hindi, Thai and others are not part of a word
WORD = re.compile(rf"(?<!{LETTER}){LETTER}{{2,256}}(?!{LETTER})")  # longer ones would not fit into a model file
TERM = re.compile(rf"\b[^\W\d_][\w{MARKS}-]{{0,38}}{LETTER}(?!{LETTER})")  # begins with a letter
RUN = re.compile(f"[{SPACELESS}]+")
SYLLABLE = re.compile(rf"\w[{MARKS}]*")


def words_in(text: str) -> list[str]:
    """All words of two letters or more; of scripts without spaces, all pairs of neighbouring letters."""
    return [*WORD.findall(RUN.sub(" ", text)), *_pairs(text)]


def terms_in(text: str) -> list[str]:
    """The words that can name something: those that begin with a letter."""
    return [*TERM.findall(RUN.sub(" ", text)), *_pairs(text)]


def _pairs(text: str) -> list[str]:
    """Pairs of neighbouring letters, each with its vowel signs; a lone letter stands for itself."""
    found: list[str] = []
    for run in RUN.findall(text):
        letters = SYLLABLE.findall(run)
        found += [a + b for a, b in pairwise(letters)] if len(letters) > 1 else letters
    return found
