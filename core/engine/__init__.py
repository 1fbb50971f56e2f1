"""The engine as others see it: protocol sessions for GUIs, sites and match programs.

    lines.py                         bytes in, lines out, and a log of both
    commands.py                      what a client can ask, whatever the protocol
    uci.py  ucci.py                  the protocols: text to commands, reports to text
    options.py                       every option: name, range, meaning, search setting
    table.py                         the game on the table: positions as clients send them
    searcher.py                      one search at a time, its limits and its clock
    workshop.py                      variants, rules and nets, loaded when they are needed
    session.py                       who answers what, and when

Nothing heavy is imported before the first handshake is answered: these modules import numpy,
rules and search inside the functions that need them.
"""
