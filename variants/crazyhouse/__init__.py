"""Crazyhouse: plugin, sample games and a net.

plugin    entries for the plugin host
readers   its game files
"""
