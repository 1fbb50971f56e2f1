"""The command group: fast start, clear errors, plugins."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from variant_ai.cli.common import ending, options
from variant_ai.cli.main import COMMANDS, VariantGroup, cli
from variant_ai.core.errors import DataError
from variant_ai.core.spec import builtin_specs

HEAVY = ("numpy", "torch", "pydantic", "numba", "onnxruntime", "pyffish", "rich")


def run_python(code: str, *paths: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter, from a folder that is not the project's."""
    env = {**os.environ, **environ}
    if paths:
        env["PYTHONPATH"] = os.pathsep.join([*map(str, paths), env.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd="/", check=False
    )


def run_cli(
    *args: str, paths: tuple[Path, ...] = (), **environ: str
) -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys; sys.argv[1:] = {list(args)!r}\nfrom variant_ai.cli.main import main; main()"
    )
    return run_python(code, *paths, **environ)


def group(**commands: click.Command) -> VariantGroup:
    """A group as ours, with commands for this test."""
    made = VariantGroup("variant-ai")
    made.list_commands = lambda ctx: list(commands)  # type: ignore[method-assign]
    made.get_command = lambda ctx, cmd_name: commands.get(cmd_name)  # type: ignore[method-assign]
    return made


def raising(error: BaseException) -> VariantGroup:
    @click.command()
    def fall() -> None:
        raise error

    return group(fall=fall)


# --- starting ------------------------------------------------------------------------------------


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "sys.argv[1:] = ['--help']\n"
        "from variant_ai.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
    assert "Play:" in done.stdout and "This installation:" in done.stdout
    assert done.stderr == ""


def test_core_is_not_importable_bare() -> None:
    done = run_python(
        "import variant_ai.cli.main, variant_ai.plugins, sys, importlib.util\n"
        "rooms = ['core', 'cli', 'plugins', 'specs', 'variants']\n"
        "print([room for room in rooms if room in sys.modules or importlib.util.find_spec(room)])"
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_version() -> None:
    from variant_ai import __version__

    result = CliRunner().invoke(cli, ["--version"])
    assert result.output.strip() == f"variant-ai, version {__version__}"


# --- help ----------------------------------------------------------------------------------------


def every_command() -> list[tuple[str, click.Command]]:
    """All of our commands and their subcommands, with the words that call them."""
    found: list[tuple[str, click.Command]] = []

    def walk(words: str, command: click.Command) -> None:
        found.append((words, command))
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                walk(f"{words} {name}", inner)

    for name, lazy in COMMANDS.items():
        walk(name, lazy.load())
    return found


def test_every_command_has_help_and_an_example() -> None:
    for words, command in every_command():
        result = CliRunner().invoke(cli, [*words.split(), "--help"])
        assert result.exit_code == 0, words
        assert command.help, f"{words} says nothing"
        assert f"variant-ai {words}" in result.output, f"{words} has no example"


def test_every_option_is_explained() -> None:
    for words, command in every_command():
        for parameter in command.get_params(click.Context(command)):
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{words} {parameter.opts[0]} is not explained"


def test_no_two_options_of_a_command_are_explained_alike() -> None:
    for words, command in every_command():
        helps = [one.help for one in command.params if isinstance(one, click.Option)]
        assert len(set(helps)) == len(helps), words


def test_options_of_an_evaluator_name_devices_and_defaults() -> None:
    command = dict(every_command())["bench"]
    helps = {one.opts[-1]: one.help for one in command.params if isinstance(one, click.Option)}
    assert "cuda:N or tensorrt" in helps["--device"]
    assert "[default:" in helps["--threads"]


def test_every_number_has_a_range() -> None:
    found = {
        f"{words} {parameter.opts[0]}"
        for words, command in every_command()
        for parameter in command.params
        for kind in getattr(parameter.type, "types", [parameter.type])
        if isinstance(kind, type(click.INT) | type(click.FLOAT))
        and not isinstance(kind, click.IntRange | options.FiniteRange)
    }
    # a game is counted from either end of its store, and a difference in Elo has both signs
    assert found == {"store show --game", "match --sprt"}


def test_every_command_that_writes_a_file_has_replace() -> None:
    """A file is overwritten with --replace only; -o FOLDER is created or continued."""
    missing = {
        words
        for words, command in every_command()
        for parameter in command.params
        if isinstance(parameter, click.Option)
        and {"--output", "--svg", "--png"} & {*parameter.opts}
        if not (isinstance(parameter.type, click.Path) and not parameter.type.file_okay)
        if not any("--replace" in other.opts for other in command.params)
    }
    assert missing == {"data fetch lichess"}  # it adds the missing months to its store


def test_every_fen_may_be_startpos() -> None:
    options = {
        words: parameter
        for words, command in every_command()
        for parameter in command.params
        if isinstance(parameter, click.Option) and "--fen" in parameter.opts
    }
    assert {"play", "perft", "bench"} <= options.keys()
    for words, option in options.items():
        assert option.callback is not None, f"{words} --fen is not made by fen_option"
        assert option.callback(None, option, "startpos") is None
        assert option.callback(None, option, "4k3/8 w") == "4k3/8 w"


def test_summaries_match_the_commands() -> None:
    for name, lazy in COMMANDS.items():
        said = lazy.load().help or ""
        assert lazy.summary.split()[0] == said.split()[0], name
        assert lazy.summary.endswith(".") and len(lazy.summary) < 70, name


# --- mistakes ------------------------------------------------------------------------------------


def test_an_error_is_one_sentence_and_status_1() -> None:
    result = CliRunner().invoke(raising(DataError("game.store: shard 3 is\ndamaged")), ["fall"])
    assert result.exit_code == 1
    assert result.stderr == "Error: game.store: shard 3 is damaged\n"
    assert result.stdout == ""


def test_an_error_of_the_system_is_one_sentence_too() -> None:
    error = OSError(28, "No space left on device", "/mnt/games.store")
    result = CliRunner().invoke(raising(error), ["fall"])
    assert result.exit_code == 1
    assert result.stderr == "Error: /mnt/games.store: No space left on device\n"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 20.1 TiB"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"
        ),
        type("OutOfMemoryError", (RuntimeError,), {})(
            "CUDA out of memory. Tried to allocate 2 GiB"
        ),
        type("AcceleratorError", (RuntimeError,), {})("CUDA error: out of memory"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    ],
)
def test_too_little_memory_is_one_sentence_too(error: Exception) -> None:
    result = CliRunner().invoke(raising(error), ["fall"])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: there is not enough memory")
    assert "--accumulate" in result.stderr


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VARIANT_AI_DEBUG", "1")
    result = CliRunner().invoke(raising(DataError("damaged")), ["fall"])
    assert isinstance(result.exception, DataError)


def test_an_internal_error_keeps_its_traceback() -> None:
    for error in (ZeroDivisionError("ours"), RuntimeError("ours too")):
        result = CliRunner().invoke(raising(error), ["fall"])
        assert result.exception is error


def test_ctrl_c_is_status_130() -> None:
    result = CliRunner().invoke(raising(KeyboardInterrupt()), ["fall"])
    assert result.exit_code == ending.EXIT_INTERRUPTED


@pytest.mark.parametrize(
    "args", [["--no-such-option"], ["varants"], ["variants", "--no-such"], ["plugins", "surplus"]]
)
def test_wrong_usage_is_status_2(args: list[str]) -> None:
    result = CliRunner().invoke(cli, args)
    assert result.exit_code == 2
    assert "Error: " in result.stderr


def test_an_unknown_command_says_which_is_closest() -> None:
    result = CliRunner().invoke(cli, ["varants"])
    assert "did you mean 'variants'" in result.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_real_ctrl_c() -> None:
    code = (
        "import click, time\n"
        "from variant_ai.cli.main import VariantGroup\n"
        "group = VariantGroup('variant-ai')\n"
        "@group.command()\n"
        "def wait():\n"
        "    print('waiting', flush=True)\n"
        "    time.sleep(60)\n"
        "group.get_command = lambda ctx, name: wait\n"
        "group.list_commands = lambda ctx: ['wait']\n"
        "group(['wait'])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in stderr


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_closed_pipe_gives_no_traceback() -> None:
    code = (
        "import click\n"
        "from variant_ai.cli.main import VariantGroup\n"
        "@click.command()\n"
        "def flood():\n"
        "    for i in range(200000): click.echo('line')\n"
        "group = VariantGroup('variant-ai')\n"
        "group.get_command = lambda ctx, name: flood\n"
        "group.list_commands = lambda ctx: ['flood']\n"
        "group(['flood'])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(20) == ending.EXIT_ERROR


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("asked", ["--help", "--version", "variants"])
def test_output_that_cannot_be_written_gives_no_traceback(asked: str) -> None:
    program = [sys.executable, "-m", "variant_ai.cli.main", asked]
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device\n")


@pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX")
def test_closed_streams_are_empty() -> None:
    """As some supervisors start programs."""

    def run(words: str) -> subprocess.CompletedProcess[str]:
        program = f"'{sys.executable}' -m variant_ai.cli.main {words}"
        return subprocess.run(program, shell=True, capture_output=True, text=True, check=False)

    done = run("variants >&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert run("variants <&- >&- 2>&-").returncode == 0
    done = run("import - -V chess -o /nowhere/x.store <&-")
    assert done.returncode == 1 and done.stderr.startswith("Error: ")


# --- plugins on the command line -----------------------------------------------------------------


def install(folder: Path, name: str, code: str) -> None:
    """An outside package in a folder, as pip would lay it out."""
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    info = folder / f"{module}-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text(f"[variant_ai]\n{module} = {module}\n")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with a plugin that greets and one that cannot be imported."""
    install(
        tmp_path,
        "variant-ai-greeting",
        "from variant_ai.plugins import CommandEntry, hookimpl\n"
        "variant_ai_api = 1\n"
        "@hookimpl\n"
        "def register_commands():\n"
        "    return [CommandEntry('greet', 'greeting_command:command', 'Say hello.'),\n"
        "            CommandEntry('gone', 'no_such_command:command', 'Not there.'),\n"
        "            CommandEntry('variants', 'greeting_command:command', 'Replace ours.')]\n",
    )
    (tmp_path / "greeting_command.py").write_text(
        "import click\n"
        "@click.command()\n"
        "def command():\n"
        "    '''Say hello.'''\n"
        "    click.echo('hello')\n"
    )
    install(tmp_path, "variant-ai-wreck", "import no_such_module_at_all\n")
    return tmp_path


def test_a_plugins_command_is_in_the_help_and_runs(outside: Path) -> None:
    shown = run_cli("--help", paths=(outside,))
    assert "greet" in shown.stdout and "Say hello." in shown.stdout
    assert "Replace ours." not in shown.stdout
    assert run_cli("greet", paths=(outside,)).stdout == "hello\n"


def test_a_plugins_command_that_is_not_there_is_one_sentence(outside: Path) -> None:
    done = run_cli("gone", paths=(outside,))
    assert done.returncode == 1
    assert "plugin 'variant_ai_greeting': cannot load 'gone' from 'no_such_command" in done.stderr
    assert "Traceback" not in done.stderr


def test_plugins_lists_good_and_broken(outside: Path) -> None:
    done = run_cli("plugins", "--json", paths=(outside,))
    assert done.returncode == 0
    rows = {row["name"]: row for row in json.loads(done.stdout)["plugins"]}
    assert rows["variant_ai_greeting"]["registers"] == {"commands": ["greet", "gone"]}
    own = "commands 'variants' is the project's own already"
    assert rows["variant_ai_greeting"]["problem"] == own
    assert rows["variant_ai_greeting"]["version"] == "0.3"
    assert rows["variant_ai_greeting"]["distribution"] == "variant-ai-greeting"
    assert "no_such_module_at_all" in rows["variant_ai_wreck"]["problem"]
    assert "'variant_ai_wreck'" in done.stderr
    shown = run_cli("plugins", paths=(outside,))
    assert "greet, gone" in shown.stdout
    assert "no_such_module_at_all" in shown.stderr


def test_without_outside_plugins(outside: Path) -> None:
    done = run_cli("plugins", "--json", paths=(outside,), VARIANT_AI_PLUGINS="")
    names = {row["name"] for row in json.loads(done.stdout)["plugins"]}
    assert {"specs", "user-specs"} < names
    assert not any(name.startswith("variant_ai_") for name in names)
    assert done.stderr == ""


# --- variants ------------------------------------------------------------------------------------


def test_variants_lists_every_spec() -> None:
    result = CliRunner().invoke(cli, ["variants", "--json"])
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert set(rows) >= set(builtin_specs())
    assert [row["problem"] for row in rows.values() if row["problem"]] == []
    assert Path(rows["crazyhouse"]["net"]).is_file()
    assert all(row["net"] is None or Path(row["net"]).is_file() for row in rows.values())
    text = CliRunner().invoke(cli, ["variants"]).stdout
    for name in builtin_specs():
        assert len([line for line in text.splitlines() if line.startswith(f"{name} ")]) == 1
    assert text.count("built in") == len(builtin_specs())


def test_a_spec_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "wreck.yaml").write_text("spec: 1\nvarant: wreck\n")
    done = run_cli("variants", VARIANT_AI_SPECS=str(tmp_path))
    assert done.returncode == 0
    assert "(cannot be read)" in done.stdout
    assert "wreck.yaml:" in done.stderr
    assert all(name in done.stdout for name in builtin_specs())
