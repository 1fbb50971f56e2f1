"""Games: records, readers of files, the game store, and the sampler for training.

game_record   a game
read/         from files to games
filters       conditions on games
store/        games in one file, with checksums
statistics    tables that describe a set of games
game_text     games as PGN and other text
fetch/        published archives
sample/       training batches
"""
