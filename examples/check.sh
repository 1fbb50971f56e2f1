#!/usr/bin/env bash
# Check all examples as outsiders would use them, or those named. PYTHON: see prepare.sh.
set -euo pipefail
cd "$(dirname "$0")"
if [ $# = 0 ]; then set -- yaml-only variant-ai-hawks variant-ai-brandubh variant-ai-example; fi
for example in "$@"; do
    begun=$SECONDS
    "./$example/check.sh"
    echo "ok: $example ($((SECONDS - begun)) s)"
done
