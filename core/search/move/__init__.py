"""Everything around the choice of a move. In reading order:

limits          limits of a search: visits, time, depth, ...
move_choice     the move to play, from visits, values and proofs of the root's moves
variations      lines of play, and the contents of reports
clock           time management: the time for a move, its lag, and when to stop
timed_search    a search with a clock
"""
