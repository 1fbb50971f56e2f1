"""A spec whose chases Fairy-Stockfish cannot judge: xiangqi on 9 ranks, which inherits `fairy: xiangqi`."""

from __future__ import annotations

from functools import cache

from variant_ai.core.spec import VariantSpec
from variant_ai.core.spec.loader import parse_spec

TEXT = """\
spec: 1
extends: xiangqi
variant: small-xiangqi
title: Xiangqi without the tenth rank
board:
  ranks: 9
  zones: {palace: d1-f3, home: rank 1-4, abroad: rank 5-9}
rules:
  start: rnbakabnr/9/1c5c1/p1p1p1p1p/9/P1P1P1P1P/1C5C1/9/RNBAKABNR w - - 0 1
"""
CYCLE = ("a1a2", "a9a8", "a2a1", "a8a9")


@cache
def small_xiangqi() -> VariantSpec:
    return parse_spec(TEXT)
