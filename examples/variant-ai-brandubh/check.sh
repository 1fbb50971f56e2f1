#!/usr/bin/env bash
# Install the package, teach a net by self-play through its rules engine, and use it.
source "$(dirname "$0")/../prepare.sh"
install

ai perft -V brandubh --depth 2 | tee perft.txt
grep -q '^tafl' perft.txt
ai reinforce -V brandubh --generations 1 --positions 150 --nodes 8 --set ladder.games=0 --run run
ai match -V brandubh --games 2 --nodes 16 --max-plies 40 -o games "net:run/model.onnx" "random"
ai analyse startpos -V brandubh --model run --nodes 50 --svg start.svg >analysis.txt
plays brandubh --model run/model.onnx
