#!/usr/bin/env bash
# Install the example beside variant-ai, and use its encoder, search and trainer from the command line.
# PYTHON: a Python in whose environment variant-ai is installed. Takes about two minutes.
set -euo pipefail
cd "$(dirname "$0")"
python=$(realpath -s "${PYTHON:-../../.venv/bin/python}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m pip install -q --no-deps --no-build-isolation --target "$work/site" .
export PYTHONPATH=$work/site${PYTHONPATH:+:$PYTHONPATH}
ai() { "$python" -m variant_ai.cli.main "$@"; }

"$python" -m pytest -q -p no:cacheprovider tests
cd "$work"
ai plugins >plugins.txt  # not into a pipe: grep ends it early, and it would fail now and then
grep -q one-ply plugins.txt
ai generate -V attack-minixiangqi --engine "net:-;evaluator=uniform" --nodes 8 --games 30 \
    --max-plies 60 -o games.store
ai train -V attack-minixiangqi --data games.store --trainer plain --net risev2-mobile-small \
    --size blocks=1 --size channels=16 --minutes 0.5 --run run
ai analyse startpos -V attack-minixiangqi --model run/model.onnx --search one-ply --json |
    "$python" -c 'import json, sys; answer = json.load(sys.stdin); assert answer["depth"] == 1, answer'
ai match -V attack-minixiangqi --games 2 --nodes 8 --max-plies 40 -o games \
    "$python -m variant_ai.cli.main engine -V attack-minixiangqi --model run/model.onnx --option Search_Algorithm=one-ply;name=one-ply" \
    "random;name=random"
echo "the example's encoder, search and trainer were used"
