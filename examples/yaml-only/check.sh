#!/usr/bin/env bash
# Use pocket.yaml as its README does, with less self-play.
source "$(dirname "$0")/../prepare.sh"
spec=$example/pocket.yaml

ai spec show "$spec" >show.txt
grep -q '^rules engine   kernel' show.txt
ai spec check "$spec" --positions 300
ai perft -V "$spec" --depth 3
ai reinforce -V "$spec" --generations 1 --positions 300 --games 16 --set ladder.games=0 --run run
ai match -V "$spec" --games 4 --nodes 16 --max-plies 60 -o games "net:run/model.onnx" "random"
ai analyse startpos -V "$spec" --model run --nodes 50 --svg start.svg >analysis.txt
grep -q '<svg' start.svg
plays "$spec" --model run/model.onnx
