#!/usr/bin/env bash
# Install the package, import a score sheet through its reader, and draw its board.
source "$(dirname "$0")/../prepare.sh"
install

ai import "$example/tests/example.sheet" -V hawks -o games.store | tee import.txt
grep -q '2 of 2 read' import.txt
ai analyse startpos -V hawks --nodes 50 --svg start.svg >analysis.txt
grep -q '#a9bf86' start.svg
plays hawks
