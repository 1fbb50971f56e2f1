"""Matches that measure the nets of a run. In reading order:

net_match       matches of two nets, and the players that think about many games at once
ladder_record   pairings of a run's nets, the Elo of its generations, and its picture
run_ladder      which nets meet, outside players, the gate
"""
