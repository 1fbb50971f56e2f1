"""Conformance of notations and of readers of game files.

Each check raises an AssertionError that describes the mistake.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Sequence
from itertools import zip_longest

from variant_ai.core.data.game_record import GameRecord
from variant_ai.core.data.read.game_reader import MAX_WORD, GameReader, RawGame
from variant_ai.core.data.read.resolve import Resolver
from variant_ai.core.errors import MoveError
from variant_ai.core.rules.game import Game
from variant_ai.core.rules.interface import Rules
from variant_ai.core.rules.position import Position
from variant_ai.core.rules.shuffled_starts import random_start
from variant_ai.core.rules.text.notation import Notation, core_notations
from variant_ai.core.system.text_tables import counted
from variant_ai.core.testing.random_games import STYLES, random_move

PLIES = 80
FOREIGN = ("", " ", "?", "♞x", "e2e4e6", "0" * 300, "Ж9=Ж", "\x00", "\ud800", "--", "@", "+", "=")
"""Words that are moves of hardly any notation."""
HEAD = 4096
"""Bytes that a reader recognises its files by."""
DAMAGED = 48
"""Damaged copies of a file that are read."""


def check_notation(
    make: Notation | Callable[[], Notation],
    rules: Rules,
    *,
    games: int = 6,
    seed: int = 0,
    starts: Sequence[str] = (),
) -> None:
    """Every legal move of random games has a text of its own, one word that is read back as the same
    move; any other text is a MoveError that shows it.

    make: the notation, or its class. starts: FENs that every other game begins at.
    """
    notation = make if isinstance(make, Notation) else make()
    assert isinstance(notation, Notation), f"made a {type(notation).__name__}, not a Notation"
    assert getattr(notation, "name", ""), "the notation has no name"
    rng = random.Random(seed)
    earlier: list[str] = []
    for number in range(games):
        given = rng.choice(starts) if starts and number % 2 else None
        game = Game(rules, given or random_start(rules.spec, rng))
        style = rng.choice(STYLES)
        while game.ply < PLIES and game.outcome() is None:
            texts = _written(notation, rules, game.position, game.legal_moves().tolist())
            for word in (*FOREIGN, *rng.sample(earlier, min(8, len(earlier)))):
                _read_foreign(notation, rules, game.position, word)
            earlier.append(rng.choice(texts))
            game.push(random_move(rules, game.position, game.legal_moves().tolist(), style, rng))
        line = notation.write_line(rules, game.positions[0], game.moves)
        assert len(line) == len(game.moves), f"write_line: {len(line)} texts of {game.ply} moves"


def _written(notation: Notation, rules: Rules, position: Position, moves: list[int]) -> list[str]:
    """Write all moves and read them back."""
    texts: dict[str, int] = {}
    for move in moves:
        where = f"{rules.uci(move)} (FEN {rules.fen(position)})"
        text = notation.write(rules, position, move)
        assert isinstance(text, str), f"{notation.name} writes {text!r} for {where}"
        assert len(text.split()) == 1, f"{text!r} is not one word; {notation.name}, {where}"
        assert len(text) <= MAX_WORD, f"{text!r} is longer than {MAX_WORD} characters; {where}"
        assert text not in texts, (
            f"{notation.name} writes {text!r} for {where} and for {rules.uci(texts[text])}"
        )
        texts[text] = move
        try:
            read = notation.read(rules, position, text)
        except MoveError as error:
            raise AssertionError(f"{text!r}, written for {where}, is not read: {error}") from error
        assert read == move, f"{text!r}, written for {where}, is read as {rules.uci(read)}"
    return list(texts)


def _read_foreign(notation: Notation, rules: Rules, position: Position, word: str) -> None:
    """A word that was not written for this position is a legal move or a MoveError."""
    where = f"(FEN {rules.fen(position)})"
    try:
        move = notation.read(rules, position, word)
    except MoveError as error:
        shown = word[:20] in str(error) or repr(word)[1:20] in str(error)
        assert shown, f"the error about {word!r} does not show it: {error}"
    except Exception as error:
        raise AssertionError(
            f"{word!r} raises {type(error).__name__}, not MoveError {where}"
        ) from error
    else:
        assert move in rules.legal_moves(position), f"{word!r} is read as an illegal move {where}"


def check_reader(
    make: GameReader | Callable[[], GameReader],
    data: bytes,
    *,
    games: int,
    rules: Rules | None = None,
    notations: Sequence[Notation] = (),
    seed: int = 0,
) -> list[GameRecord]:
    """A file is recognised and always read as the same games, and damage to it is never an error but a
    game with a problem.

    make: the reader, or its class. data: an undamaged file with this number of `games`. rules: if given, the games must be
    legal, in one of `notations` or those of the core. Returns the games; none without `rules`.
    """
    reader = make if isinstance(make, GameReader) else make()
    assert isinstance(reader, GameReader), f"made a {type(reader).__name__}, not a GameReader"
    assert getattr(reader, "name", ""), "the reader has no name"
    for suffix in reader.extensions:
        assert suffix.startswith(".") and suffix == suffix.lower(), (
            f"extension {suffix!r}; accepted: lower case with its dot, such as '.pgn'"
        )
    assert reader.sniff(data[:HEAD]), "the reader does not recognise its own file"
    rng = random.Random(seed)
    for other in (b"", b"\0" * 64, bytes(rng.randrange(256) for _ in range(HEAD))):
        found = reader.sniff(other)
        assert found is False, f"sniff gives {found!r} for {other[:8]!r}…; expected False"
    read = _read(reader, data)
    assert len(read) == games, f"{counted(len(read), 'game')} were read, the file has {games}"
    for number, game in enumerate(read, 1):
        where = f"game {number}, line {game.line}"
        assert not game.problem, f"{where}: {game.problem}: {game.detail}"
        assert game.number == number, f"{where} says that its number is {game.number}"
        assert game.source == "file", f"{where} says that its source is {game.source!r}"
        assert len(game.lines) == len(game.moves), f"{where}: lines and moves differ in length"
    lines = [game.line for game in read]
    assert lines == sorted(lines) and lines[:1] >= [1], f"lines of the games: {lines}"
    pairs = zip_longest(reader.read(_stream(data), "file"), reader.read(_stream(data), "file"))
    assert all(one == other for one, other in pairs), "two files read at once give other games"
    for _ in range(DAMAGED):
        at = rng.randrange(len(data) + 1)
        _read(reader, data[:at])
        junk = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        _read(reader, data[:at] + junk + data[at + rng.randrange(9) :])
    return [] if rules is None else _resolved(read, rules, notations)


def _stream(data: bytes) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(data))


def _read(reader: GameReader, data: bytes) -> list[RawGame]:
    """Read a whole file, damaged or not."""
    try:
        read = list(reader.read(_stream(data), "file"))
    except Exception as error:
        raise AssertionError(
            f"a file that ends in {data[-20:]!r} raises {type(error).__name__}: {error}; a reader "
            "gives a game with a `problem` instead"
        ) from error
    for game in read:
        assert isinstance(game, RawGame), f"yielded a {type(game).__name__}, not a RawGame"
    return read


def _resolved(read: list[RawGame], rules: Rules, notations: Sequence[Notation]) -> list[GameRecord]:
    resolver = Resolver(rules, [*notations, *core_notations()])
    records = []
    for game in read:
        record = resolver.resolve(game)
        assert isinstance(record, GameRecord), f"game {game.number}: {record.detail}"
        records.append(record)
    return records
