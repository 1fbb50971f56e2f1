"""Fetching published archives of games.

remote_file       a file of a web server, with retries that resume
monthly_archive   monthly files, those of database.lichess.org, into a store
"""
