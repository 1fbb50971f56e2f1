"""Fetching published archives of games.

remote_file       a file of a web server, with retries that resume
lichess           monthly files of database.lichess.org, into a store
"""
