"""Crazyhouse: plugin, sample games and a net.

Modules in reading order:

    plugin    entries for the plugin host
    readers   its game files
"""
