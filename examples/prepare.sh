# Sourced by the check.sh of each example: an empty folder to work in, and the commands used there.
# PYTHON: a Python in whose environment variant-ai is installed; by default that of the checkout.
set -euo pipefail
example=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
python=$(realpath -s "${PYTHON:-$example/../../.venv/bin/python}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

ai() { "$python" -m variant_ai.cli.main "$@"; }

# Install the package as an outsider does, but into this folder, and run its tests.
install() {
    "$python" -m pip install -q --no-deps --no-build-isolation --disable-pip-version-check \
        --target "$work/site" "$example"
    export PYTHONPATH=$work/site${PYTHONPATH:+:$PYTHONPATH}
    "$python" -m pytest -q -p no:cacheprovider "$example/tests"
}

# plays VARIANT [OPTION...]: the engine answers over UCI.
plays() {
    "$python" - "$@" <<'PYTHON'
import subprocess, sys

variant, *options = sys.argv[1:]
command = [sys.executable, "-m", "variant_ai.cli.main", "engine", "-V", variant, *options]
with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as engine:
    engine.stdin.write("uci\nisready\nposition startpos\ngo nodes 20\n")
    engine.stdin.flush()
    best = next((line for line in engine.stdout if line.startswith("bestmove")), "no answer")
    engine.stdin.write("quit\n")
assert best.startswith("bestmove ") and "(none)" not in best, best
print(f"{variant}: {best.strip()}")
PYTHON
}
