"""The server over raw connections: hostile input, tokens, other pages, limits, fairness."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
import urllib.error
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from page_driver import SPEC, Server

pytest.importorskip("starlette", reason="needs the extra `web`")

from starlette.requests import HTTPConnection

from variant_ai.core.web.client_messages import MESSAGES
from variant_ai.core.web.web_server import Guard
from variant_ai.core.web.web_settings import WebSettings

websockets = pytest.importorskip("websockets", reason="needs the extra `web`")

TOKEN = "a-word-for-the-test"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server("--allow-searches", "2", "--allow-seconds", "5")
    yield running
    running.close()


class Client:
    """A client that asks and waits for answers."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.numbers = 0

    async def ask(self, **message: Any) -> dict[str, Any]:
        """Return the final answer to a message."""
        self.numbers += 1
        await self.socket.send(json.dumps({"id": self.numbers, **message}))
        while True:
            answer = await self.next()
            if answer["id"] == self.numbers and answer.get("final", True):
                return answer

    async def next(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(await asyncio.wait_for(self.socket.recv(), 60))
        return answer


def talk(server: Server, conversation: Callable[[Client], Awaitable[None]], **how: Any) -> None:
    async def run() -> None:
        async with websockets.connect(server.talk, max_size=None, **how) as socket:
            await conversation(Client(socket))

    asyncio.run(run())


BAD = [
    ("{", "no JSON"),
    ("[]", "a message is a JSON object"),
    ("null", "a message is a JSON object"),
    ('{"id": 1e999, "type": "hello"}', "id: a whole number"),
    ('{"id": NaN, "type": "hello"}', "id: a whole number"),
    ('{"id": true, "type": "hello"}', "id: a whole number"),
    ('{"id": -1, "type": "hello"}', "id: a whole number"),
    ('{"id": 1}', "type: a value is needed; accepted: describe"),
    ('{"id": 1, "type": "spec", "text": "\\u0000"}', "text without null characters is expected"),
    ('{"id": 1, "type": ["hello"]}', "unknown type"),
    ('{"id": 1, "type": "position"}', "variant: a value is needed"),
    ('{"id": 1, "type": "position", "variant": 7}', "variant: text is expected, given 7"),
    ('{"id": 1, "type": "position", "variant": "../../etc/passwd"}', "unknown variant"),
    ('{"id": 1, "type": "position", "variant": "own:../../etc/passwd"}', "does not have this spec"),
    ('{"id": 1, "type": "position", "variant": "/etc/passwd.yaml"}', "unknown variant"),
    ('{"id": 1, "type": "describe", "variant": "chess", "style": "x"}', "unknown style"),
    ('{"id": 1, "type": "position", "variant": "chess", "moves": "e2e4"}', "a list is expected, given 'e2e4'"),
    ('{"id": 1, "type": "position", "variant": "chess", "moves": [1]}', "moves.0: text is expected"),
    ('{"id": 1, "type": "position", "variant": "chess", "moves": ["e2e5"]}', "illegal uci move"),
    ('{"id": 1, "type": "position", "variant": "chess", "fen": "<b>"}', "FEN"),
    ('{"id": 1, "type": "position", "variant": "chess", "fen": "a\\u0000"}', "printable"),
    ('{"id": 1, "type": "position", "variant": "chess", "evil": 1}', "unknown field 'evil'; accepted: fen"),
    ('{"id": 1, "type": "search", "variant": "chess", "nodes": 0}', "nodes: at least 1 is expected"),
    ('{"id": 1, "type": "search", "variant": "chess", "nodes": 1.5}', "nodes: a whole number is expected"),
    ('{"id": 1, "type": "search", "variant": "chess", "seconds": -1}', "at least 0 is expected"),
    ('{"id": 1, "type": "search", "variant": "chess", "seconds": 1e99}', "at most 1000000 is expected"),
    ('{"id": 1, "type": "search", "variant": "chess", "clock": {}}', "0 entries where 1 to 2 are accepted"),
    ('{"id": 1, "type": "search", "variant": "chess", "elo": 9}', "from 800 to 2600"),
    ('{"id": 1, "type": "search", "variant": "chess", "clock": []}', "clock:"),
    ('{"id": 1, "type": "search", "variant": "chess", "net": "/etc/passwd"}', "unknown net"),
    ('{"id": 1, "type": "layer", "variant": "chess", "net": "random"}', "not the file of a net"),
    ('{"id": 1, "type": "layer", "variant": "chess", "net": "uniform"}', "not the file of a net"),
    ('{"id": 1, "type": "layer", "variant": "dobutsu", "layer": 99}', "from 0 to"),
    ('{"id": 1, "type": "layer", "variant": "dobutsu", "layer": -1}', "layer: at least 0 is expected"),
    ('{"id": 1, "type": "run", "run": "../.."}', "unknown run"),
    ('{"id": 1, "type": "pgn", "variant": "chess", "tags": {"Evil": "x"}}', "'Event', 'White', 'Black'"),
    ('{"id": 1, "type": "pgn", "variant": "chess", "tags": {"White": "a\\nb"}}', "one line"),
    ('{"id": 1, "type": "pgn", "variant": "chess", "tags": {"White": "\\ud800"}}', "unicode string"),
    ('{"id": 1, "type": "read", "variant": "chess", "text": "nothing"}', "this is no game"),
    ('{"id": 1, "type": "position", "variant": "chess", "moves": %s}' % (["e2e4"] * 5000), "JSON"),
    (json.dumps({"id": 1, "type": "position", "variant": "chess", "moves": ["e2e4"] * 5000}), "5000 entries where 0 to 1500 are accepted"),
    (json.dumps({"id": 1, "type": "spec", "text": "a" * 200_000}), "at most 100000 characters"),
    ('{"id": 1, "type": "hello", "a": ' + "[" * 100_000, "no JSON"),
    ('{"id": 1, "type": "hello", "a": 1, "\\ud800": 1}', "unknown field 'a'"),
    ('{"id": 1, "type": "hello", "\\ud800": 1}', "unknown field"),
    (json.dumps({"id": 1, "type": "hello", "a" * 300_000: 1}), "unknown field 'aaa"),
    (json.dumps({"id": 1, "type": "pgn", "variant": "chess", "tags": {"Result": "2-0"}}), "0-1, 1/2-1/2"),
    (json.dumps({"id": 1, "type": "read", "variant": "chess", "text": "x" * 500_000}), "at most 400000"),
]  # fmt: skip


def test_hostile_messages_are_rejected_with_a_reason(server: Server) -> None:
    async def conversation(client: Client) -> None:
        assert "version" in await client.ask(type="hello")
        for text, reason in BAD:
            await client.socket.send(text)
            answer = await client.next()
            assert reason in answer["error"], (text[:80], answer)
        await client.socket.send(b"\xff\x00")
        assert "no JSON" in (await client.next())["error"]
        assert (await client.ask(type="hello"))["limits"]["message"] == 400_000
        long = await client.ask(type="read", variant="chess", text="x" * 500_000)
        assert "at most 400000 characters" in long["error"]  # with the id of the question

    talk(server, conversation)


def test_a_huge_message_ends_its_own_connection_only(server: Server) -> None:
    async def conversation(client: Client) -> None:
        async def big(other: Client) -> None:
            with pytest.raises(websockets.ConnectionClosed):
                await other.socket.send("x" * 5_000_000)
                await other.next()

        async with websockets.connect(server.talk) as socket:
            await big(Client(socket))
        assert "version" in await client.ask(type="hello")

    talk(server, conversation)


FILES = [
    ("spec: 1\nextends: ../../../etc/passwd.yaml\nvariant: x\ntitle: x\n", "the name of a variant"),
    ("spec: 1\nextends: /etc/x.yml\nvariant: x\ntitle: x\n", "the name of a variant"),
    ("spec: 1\nextends: [chess]\nvariant: x\ntitle: x\n", "the name of a variant"),
    ("spec: 1\nextends: chess\nvariant: x\ntitle: x\nfairy_ini: /etc/passwd\n", "not the name of a file"),
    ("a: &a [*a]", "alias"),
    ("- 1", "mapping"),
    ("!!python/object/apply:os.system ['true']", "spec"),
    ("[" * 1000, "nested"),
    ("\x01", "YAML"),
]  # fmt: skip


def test_specs_of_visitors_read_no_files(server: Server) -> None:
    async def conversation(client: Client) -> None:
        for text, reason in FILES:
            answer = await client.ask(type="spec", text=text)
            assert "mistakes" in answer, (text[:60], answer)
            messages = " ".join(one["message"] for one in answer["mistakes"])
            assert reason in messages, (text[:60], answer)
            assert "root:" not in json.dumps(answer)
            assert "variant" not in answer

    talk(server, conversation)


def test_a_spec_of_a_visitor_is_played(server: Server) -> None:
    async def conversation(client: Client) -> None:
        spec = await client.ask(type="spec", text=SPEC.read_text())
        assert spec["mistakes"] == []
        name = spec["variant"]
        position = await client.ask(type="position", variant=name)
        assert len(position["legal"]) == spec["legal"]
        found = await client.ask(type="search", variant=name, net="uniform", nodes=20)
        assert found["best"] in position["legal"]
        assert (await client.ask(type="source", variant=name))["text"] == SPEC.read_text()
        policy = await client.ask(type="policy", variant=name, net="random")
        assert {move for move, _ in policy["policy"]} == set(position["legal"])
        assert sum(share for _, share in policy["policy"]) == pytest.approx(1, abs=0.01)

    talk(server, conversation)


def status(server: Server, path: str, **headers: str) -> int:
    try:
        with server.get(path, **headers) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_players_of_matches_are_opponents() -> None:
    running = Server("--player", "random;name=Chance", "--player", "packaged;name=Ours;nodes=9")
    try:

        async def conversation(client: Client) -> None:
            assert (await client.ask(type="hello"))["players"] == ["Chance", "Ours"]
            legal = (await client.ask(type="position", variant="crazyhouse"))["legal"]
            for name in ("Chance", "Ours"):
                game = {"variant": "crazyhouse", "net": name}
                found = await client.ask(type="search", nodes=5, **game)
                assert found["best"] in legal
                again = await client.ask(type="search", nodes=5, moves=["e2e4", "e7e5"], **game)
                assert again["best"]
            refused = await client.ask(type="policy", variant="crazyhouse", net="Chance")
            assert "there is no net to look into" in refused["error"]

        talk(running, conversation)
    finally:
        running.close()


def test_files_and_headers(server: Server) -> None:
    with server.get("/") as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Access-Control-Allow-Origin"] is None
        page = answer.read().decode()
    assert "http://" not in page
    assert "https://" not in page
    for path in ("/files/app.js", "/files/app-style.css", "/files/schema.json", "/analyse"):
        assert status(server, path) == 200
    for path in (
        "/files/../web_server.py",
        "/files/..%2fweb_server.py",
        "/files/%2e%2e/%2e%2e/web_server.py",
        "/files//etc/passwd",
        "/files/index.html%00",
        "/static/app.js",
        "/files/",
    ):
        assert status(server, path) == 404, path


def test_the_protocol_is_described(server: Server) -> None:
    with server.get("/files/protocol.json") as answer:
        document = json.load(answer)
    assert document["asyncapi"].startswith("3.")
    messages = document["channels"]["talk"]["messages"]
    assert set(messages) == {*MESSAGES, "answer"}
    assert messages["search"]["payload"]["required"] == ["id", "type", "variant"]
    assert messages["search"]["payload"]["properties"]["seconds"]["description"].endswith(" 5")
    assert messages["layer"]["payload"]["properties"]["layer"]["anyOf"][0]["minimum"] == 0


def test_other_pages_and_other_names_are_refused(server: Server) -> None:
    assert status(server, "/", Host="evil.example") == 403
    assert status(server, "/", Host="localhost:1") == 200
    assert status(server, "/", Origin="http://evil.example") == 403

    async def nothing(client: Client) -> None:
        raise AssertionError("it was let in")

    for origin in ("http://evil.example", "null", f"http://localhost:{server.port}"):
        with pytest.raises(websockets.InvalidStatus, match="403"):
            talk(server, nothing, origin=origin)


def test_a_token_is_asked_for() -> None:
    running = Server("--token", TOKEN)
    try:
        assert running.address.endswith(f"?token={TOKEN}")
        for path in ("/", "/files/app.js", "/health", "/?token=wrong", "/?token=%ff"):
            assert status(running, path) == 403, path
        assert status(running, "/files/app.js", Cookie=f"variant-ai-token={TOKEN}") == 200
        assert status(running, "/files/app.js", Authorization=f"Bearer {TOKEN}") == 200
        assert status(running, f"/?token={TOKEN}") in (200, 403)  # urllib keeps no cookies
        with pytest.raises(websockets.InvalidStatus, match="403") as rejected:
            talk(running, lambda client: client.ask(type="hello"))  # type: ignore[arg-type]
        assert b"Open the address" in (rejected.value.response.body or b"")
        game = "variant=crazyhouse&moves=e2e4+e7e5&notation=%C3%A4"
        answer = raw_answer(running, f"/?%74oken={TOKEN}&{game}&token={TOKEN}")
        assert answer.status == 303
        assert answer.headers["Location"] == f"/?{game}"
        assert "samesite=lax" in answer.headers["Set-Cookie"].lower()
        assert raw_answer(running, f"/watch?token={TOKEN}").headers["Location"] == "/watch"

        async def hello(client: Client) -> None:
            assert "version" in await client.ask(type="hello")

        talk(running, hello, additional_headers={"Authorization": f"Bearer {TOKEN}"})
    finally:
        running.close()


def raw_answer(server: Server, path: str) -> http.client.HTTPResponse:
    """Return the answer to a request, without following it elsewhere."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request("GET", path)
        return connection.getresponse()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("host", "accepted"),
    [("127.0.0.2:80", True), ("127.0.0.1", True), ("localhost:80", True), ("[::1]:80", True),
     ("evil.example:80", False), ("192.168.1.2", False), ("127.0.0.1.evil.example", False),
     ("", False)],
)  # fmt: skip
def test_names_of_this_machine_are_accepted(host: str, accepted: bool) -> None:
    async def app(*_: Any) -> None:
        raise AssertionError

    guard = Guard(app, WebSettings(host="127.0.0.2"))
    scope = {"type": "http", "path": "/", "headers": [(b"host", host.encode())]}
    assert (guard._rejection(HTTPConnection(scope)) is None) == accepted


def test_a_page_too_many_gets_the_reason() -> None:
    running = Server("--allow-visitors", "1")
    try:

        async def conversation(client: Client) -> None:
            assert "version" in await client.ask(type="hello")
            with pytest.raises(websockets.InvalidStatus, match="503") as rejected:
                await websockets.connect(running.talk)
            assert b"Too many pages" in (rejected.value.response.body or b"")
            health = raw_answer(running, "/health")
            assert health.status == 503
            assert "version" in await client.ask(type="hello")

        talk(running, conversation)
        end = time.monotonic() + 10
        while status(running, "/health") != 200:
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        running.close()


def test_the_weakest_power_and_more_seconds_than_allowed(server: Server) -> None:
    async def conversation(client: Client) -> None:
        legal = (await client.ask(type="position", variant="dobutsu"))["legal"]
        for elo in (1999, 1994, 800):
            found = await client.ask(type="search", variant="dobutsu", elo=elo)
            assert found.get("best") in legal, found
        found = await client.ask(type="search", variant="dobutsu", seconds=900, nodes=10)
        assert found.get("best") in legal, found

    talk(server, conversation)


def test_one_visitor_cannot_starve_another(server: Server) -> None:
    async def conversation(greedy: Client) -> None:
        await greedy.ask(type="hello")
        await greedy.ask(type="search", variant="crazyhouse", nodes=10)
        for number in range(3):
            long = {"type": "search", "variant": "crazyhouse", "seconds": 5}
            await greedy.socket.send(json.dumps({"id": 100 + number, **long}))
        rejected = await greedy.next()
        assert rejected["id"] == 102
        assert "at most 2 searches" in rejected["error"]
        async with websockets.connect(server.talk) as socket:
            modest = Client(socket)
            began = time.monotonic()
            answer = await modest.ask(type="search", variant="crazyhouse", moves=["e2e4"], nodes=10)
            assert answer["best"]
            assert time.monotonic() - began < 4.5  # a slice of 2 s, not the 10 s of both searches
            position = await modest.ask(type="position", variant="crazyhouse")
            assert position["legal"]
        await greedy.socket.send(json.dumps({"id": 0, "type": "stop", "search": 101}))
        answers = [await greedy.next() for _ in range(2)]
        assert {answer["id"] for answer in answers} == {100, 101}
        assert next(one for one in answers if one["id"] == 100).get("shared")

    talk(server, conversation)


def test_many_questions_are_bounded_and_all_answered(server: Server) -> None:
    async def conversation(client: Client) -> None:
        for number in range(300):
            question = {"id": number, "type": "position", "variant": "dobutsu", "moves": ["b2b3"]}
            await client.socket.send(json.dumps(question))
        answers = [await client.next() for _ in range(300)]
        assert {answer["id"] for answer in answers} == set(range(300))
        rejected = [answer for answer in answers if "error" in answer]
        assert all("at most 64 questions" in answer["error"] for answer in rejected)
        assert len(rejected) < 300

    talk(server, conversation)
