"""Variants that ship with a plugin of their own; they register through the same hooks as others.

    crazyhouse   a reader of its games
    xiangqi      readers of its games, Chinese notation and WXF

All other shipped variants need nothing but their spec in `specs/`.
"""
