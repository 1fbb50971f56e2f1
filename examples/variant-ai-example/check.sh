#!/usr/bin/env bash
# Install the example, and use its encoder, search and trainer from the command line.
source "$(dirname "$0")/../prepare.sh"
install

ai plugins >plugins.txt # not into a pipe: grep ends it early, and it would fail now and then
grep -q one-ply plugins.txt
ai generate -V attack-minixiangqi --engine "net:-;evaluator=uniform" --nodes 4 --games 10 \
    --max-plies 50 -o games.store
ai train -V attack-minixiangqi --data games.store --trainer plain --net risev2-mobile-small \
    --size blocks=1 --size channels=16 --minutes 0.1 --run run
ai analyse startpos -V attack-minixiangqi --model run/model.onnx --search one-ply --json |
    "$python" -c 'import json, sys; answer = json.load(sys.stdin); assert answer["depth"] == 1, answer'
ai match -V attack-minixiangqi --games 2 --nodes 8 --max-plies 30 -o games \
    "$python -m variant_ai.cli.main engine -V attack-minixiangqi --model run/model.onnx --option Search_Algorithm=one-ply;name=one-ply" \
    "random;name=random"
