"""Xiangqi: plugin, sample games and a net.

Modules in reading order:

    plugin        entries for the plugin host
    notation      Chinese notation and WXF, moves as piece, file, direction and number
    readers       its game files
"""
