"""The game store: format, reader and writer.

blocks         container: a file of checksummed blocks
columns        numbers and texts of many games as bytes
store_format   contents of the blocks
stored_moves   moves as codes, and duplicates
visits         visits of searches, and the ROOT block
store_info     contents and history of a store
store_writer   writing, appending, resuming
game_store     reading
"""

from variant_ai.core.renamed import moved_names

__getattr__ = moved_names(__name__, {"Store": "variant_ai.core.data.store.game_store"})
