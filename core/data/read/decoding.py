"""Lines of text from bytes in an unknown encoding.

Chinese game files are UTF-8, Big5, GB18030 or UTF-16, rarely declare which, and often begin with
long stretches of ASCII. So bytes are read as ASCII until a line is not; then the next 64 KiB decide,
and decide again if a later line does not fit. Names and single lines are decided by the characters
that occur in game files: general detectors (charset-normalizer) need longer texts.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections import deque
from collections.abc import Iterator
from functools import lru_cache

MAX_LINE = 1 << 20
"""Bytes; a longer line is returned in pieces, so that memory stays bounded."""
WINDOW = 1 << 16
"""Bytes by which an encoding is decided."""
MAX_SAMPLE = 1000
"""Characters by which an encoding is decided."""
REPLACEMENT = "\ufffd"

_SURE_OF_UTF8 = 9
"""Bytes above ASCII; a line with fewer may be valid UTF-8 by chance."""
_CHINESE = ("cp950", "gb18030", "big5hkscs")
_WESTERN = "cp1252"
_SURE_OF_CHINESE = 0.25
"""Share of common characters among those beyond ASCII at which a Chinese encoding is certain."""
_MIN_DOUBTFUL = 4
"""Characters a line must have to make an encoding doubtful."""
_MAX_DOUBTS = 50
"""Deciding again takes milliseconds, so it is not done for every line of an unusual text."""
_UTF16_BOMS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_UTF8_BOM = b"\xef\xbb\xbf"
_CUT_HEAD = 1 << 10
"""A head of this length is the beginning of a longer file."""
_HIGH_BYTES = bytes(range(0x80, 0x100))
_TWO_LETTERS = re.compile(rb"(?<=[A-Za-z])[\xc0-\xff]{2}(?=[a-z])")
_LONE_BYTE = re.compile(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])")
_HIGH_BYTE = re.compile(rb"[\x80-\xff]")

_FOREIGN = re.compile(r"[^\x00-\x7f]")

COMMON = frozenset(
    # the most frequent characters of written Chinese, both scripts;
    "的一是不了在人有我他這这中大來来上國国個个到說说們们為为子和你地出道也時时年得就那要下以生會会"
    "自著着去之過过家學学對对可她里裡後后小麼么心多天而能好都然沒没日於于起還还發发成事只作當当想看"
    "文無无開开手十用主行方又如前所本見见經经頭头面公同三已老從从動动兩两長长"
    # numbers, punctuation and fullwidth forms;
    "二四五六七八九零百千０１２３４５６７８９，。、：；！？「」（）《》－・　"
    # words of the headers of game files: results, events, cities,
    "紅红黑先勝胜負负和賽赛局棋杯第輪轮屆届全省市區区體体團团隊队選选男女子組组冠軍军王名手象月"
    "北京上海天津廣广東东西南州江湖河山川黑龍龙吉林遼辽寧宁安徽浙福建蘇苏陝陕雲云貴贵香港澳門门臺台灣湾"
    "沈瀋陽阳武漢汉重慶庆煤礦矿火車车頭头電电力農农協协"
    # and the most frequent family names
    "李張张劉刘陳陈楊杨趙赵黃黄周吳吴徐孫孙胡朱高何郭馬马羅罗梁宋鄭郑謝谢韓韩唐馮冯董蕭萧程曹袁鄧邓許许"
    "傅曾彭呂吕蔣蒋蔡賈贾丁魏薛葉叶閻阎余潘杜戴夏鍾钟汪田任姜范方石姚譚谭廖鄒邹熊金陸陆郝孔白崔康毛邱秦柳卜"
)


def detect(data: bytes, expect: str = "") -> str:
    """Return the most likely codec of `data`, which are whole lines.

    `expect`: frequent characters of such text, in addition to those of the language.
    """
    for bom, codec in _UTF16_BOMS:
        if data.startswith(bom):
            return codec
    if (wide := _utf16_without_bom(data)) is not None:
        return wide
    if _decodes(data, "utf-8"):
        return "utf-8"
    common = _common(expect)
    scores = {codec: _familiar(data, codec, common) for codec in _CHINESE}
    best = max(_CHINESE, key=lambda codec: scores[codec])
    if scores[best] >= _SURE_OF_CHINESE:
        return best
    return _WESTERN if _looks_western(data) or not _decodes(data, best) else best


def _looks_western(data: bytes) -> bool:
    """Return True if the bytes beyond ASCII look like letters of Western names: alone among ASCII, or
    two together within a word. (Half of the bytes of Big5 stand alone too.)"""
    alone = len(_LONE_BYTE.findall(data)) + 2 * len(_TWO_LETTERS.findall(data))
    return alone > 0.9 * len(_HIGH_BYTE.findall(data))


@lru_cache(maxsize=16)
def _common(expect: str) -> frozenset[str]:
    return COMMON | frozenset(expect)


def _decodes(data: bytes, codec: str) -> bool:
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def _familiar(data: bytes, codec: str, common: frozenset[str]) -> float:
    """Share of common characters among those beyond ASCII; undecodable ones count twice against it."""
    foreign = _FOREIGN.findall(data.decode(codec, "replace"))[:MAX_SAMPLE]
    if not foreign:
        return 0.0
    broken = foreign.count(REPLACEMENT)
    return (sum(map(common.__contains__, foreign)) - 2 * broken) / len(foreign)


def _utf16_without_bom(data: bytes) -> str | None:
    """Codec of text in UTF-16 with much ASCII: every second byte is zero. None for other text."""
    head = data[:1024]
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd > len(head) // 8 and even * 8 < odd:
        return "utf-16-le"
    if even > len(head) // 8 and odd * 8 < even:
        return "utf-16-be"
    return None


def decode_name(name: bytes) -> str:
    """Decode a file name in an unknown encoding."""
    return name.decode(detect(name), "replace")


def head_text(head: bytes, expect: str = "") -> str:
    """Decode the first bytes of a file, to recognise its format; a cut character is dropped."""
    whole = head.rstrip(_HIGH_BYTES) if len(head) >= _CUT_HEAD else head
    text = whole.decode(detect(whole, expect), "replace")
    return text.removeprefix("\ufeff")


class TextLines:
    """Iterator over (line number from 1, text without its line end), in bounded memory.

    Bytes that fit no encoding become U+FFFD, so that the reader of the line can report its place.
    """

    def __init__(
        self, stream: io.BufferedReader, expect: str = "", *, longest: int = MAX_LINE
    ) -> None:
        """`longest`: bytes of a line that are returned in one piece."""
        self.stream = stream
        self.longest = longest
        self.expect = expect
        self.encoding = "ascii"
        """Encoding found so far."""
        self._ahead: deque[bytes] = deque()
        self.is_cut = False
        """True if the last text is a piece of a line longer than `longest`, but not its end."""
        self.is_rest = False
        """True if the last text continues a line of which a piece was returned before."""
        self._doubts = 0
        self._carried = b""
        """Beginning of a piece of a long line, so that no character is cut in two."""

    def __iter__(self) -> Iterator[tuple[int, str]]:
        head = self.stream.peek(1024)
        codec = (
            detect(head[:1024]) if b"\x00" in head or head[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        )
        lines = self._wide(codec) if codec.startswith("utf-16") else self._narrow()
        number = 0
        for line in lines:
            text = line.rstrip("\r\n")
            if self.is_rest:
                yield number, text
                continue
            # old Macintosh files end lines with a carriage return alone
            for piece in text.split("\r") if "\r" in text else (text,):
                number += 1
                yield number, piece

    def _wide(self, codec: str) -> Iterator[str]:
        self.encoding = codec
        text = io.TextIOWrapper(self.stream, codec, errors="replace", newline="\n")
        first = True
        while line := text.readline(self.longest):
            self.is_rest, self.is_cut = self.is_cut, len(line) >= self.longest and line[-1] != "\n"
            yield line.removeprefix("\ufeff") if first else line
            first = False
        text.detach()

    def _narrow(self) -> Iterator[str]:
        while line := self._ahead.popleft() if self._ahead else self._read():
            # A piece may be shorter by the beginning of its last character.
            cut = len(line) > self.longest - 2048 and not line.endswith(b"\n")
            self.is_rest, self.is_cut = self.is_cut, cut
            yield line.decode("ascii") if line.isascii() else self._decode(line)

    def _read(self) -> bytes:
        line = self.stream.readline(self.longest)
        is_piece = len(line) >= self.longest and not line.endswith(b"\n")
        if self._carried:
            line, self._carried = self._carried + line, b""
        elif line.startswith(_UTF8_BOM):  # concatenated files keep theirs
            line = line[len(_UTF8_BOM) :] or self.stream.readline(self.longest)
        if is_piece:
            cut = _last_boundary(line)
            line, self._carried = line[:cut], line[cut:]
        return line

    def _decode(self, line: bytes) -> str:
        # UTF-8 first: other encodings fail within a few bytes.
        utf8: str | None = None
        with contextlib.suppress(UnicodeDecodeError):
            utf8 = line.decode("utf-8")
            if self.encoding == "utf-8" or len(_HIGH_BYTE.findall(line)) >= _SURE_OF_UTF8:
                self.encoding = "utf-8"
                return utf8
        if self.encoding in _CHINESE:
            try:
                text = line.decode(self.encoding)
            except UnicodeDecodeError:
                pass
            else:
                if self.encoding != "gb18030" or not self._doubtful(text):
                    return text
        elif self.encoding == _WESTERN and (utf8 is not None or _looks_western(line)):
            return line.decode(_WESTERN, "replace") if utf8 is None else utf8
        self.encoding = self._decide(line)
        if self.encoding == _WESTERN and utf8 is not None:  # names of both kinds in one file
            return utf8
        return line.decode(self.encoding, "replace")

    def _doubtful(self, text: str) -> bool:
        """Return True if hardly a character is common: GB18030 decodes nearly everything."""
        foreign = _FOREIGN.findall(text)
        common = _common(self.expect)
        if len(foreign) < _MIN_DOUBTFUL or 5 * sum(c in common for c in foreign) >= len(foreign):
            return False
        self._doubts += 1
        return self._doubts <= _MAX_DOUBTS

    def _decide(self, line: bytes) -> str:
        """Return the encoding from this line on: that of all lines ahead, or if those are mixed or
        damaged, one that fits the next few lines."""
        window, size = [line, *self._ahead], len(line) + sum(map(len, self._ahead))
        while size < WINDOW and (ahead := self._read()):
            self._ahead.append(ahead)
            window.append(ahead)
            size += len(ahead)
        # Lines of valid UTF-8 do not count if the others are Western names.
        other = [line for line in window if not line.isascii() and not _decodes(line, "utf-8")]
        if other and detect(b"".join(other), self.expect) == _WESTERN:
            return _WESTERN
        for lines in (window, window[:8], window[:1]):
            data = b"".join(lines)
            codec = detect(data, self.expect)
            if codec != _WESTERN and _decodes(data, codec):
                return codec
        return detect(b"".join(window), self.expect)


def _last_boundary(line: bytes) -> int:
    """Position at which a long line may be cut: after the last ASCII byte near its end, if there is
    one, else before its last character if it is UTF-8."""
    tail = line[-1024:]
    for match in re.finditer(rb"[\x00-\x7f](?=[\x80-\xff]*\Z)", tail):
        return len(line) - len(tail) + match.end()
    start = max(i for i in range(len(line) - 4, len(line)) if line[i] >= 0xC0 or i == len(line) - 4)
    return start
