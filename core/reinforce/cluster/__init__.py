"""Self-play on a Ray cluster. In reading order:

cluster_player  a player on any machine; it keeps no state that matters
cluster_games   the supply of games: players are started, replaced and given nets
"""
