"""Fetching published archives of games.

remote_file       a file on a web server as a stream that resumes
lichess           monthly files of database.lichess.org
monthly_archive   monthly files into a store
"""
