"""Xiangqi: plugin, sample games and a net.

Modules in reading order:

    plugin        entries for the plugin host
    description   moves as piece, file, direction and number
    notation      Chinese notation and WXF
    readers       its game files
"""
