"""Matches that measure the nets of a run. In reading order:

batch_players   players that think about many games at once
net_match       matches of two nets
ladder_record   pairings of a run's nets, and the Elo of its generations
ladder_picture  a ladder as a picture
run_ladder      which nets meet, outside players, the gate
"""
