"""install.py FILE ID     writes into a running server's SQLite file that an instance is on its server, with a Unix user of its own.

Nothing is there. Only what is on its server is given out, and the tests of claims have no server to install anything on.
"""

import sqlite3
import sys


def main(file: str, instance: str) -> None:
    with sqlite3.connect(file, timeout=30) as database:
        sql = "UPDATE instance SET home = '/srv/assistants/' || id, isolation = 'own', runs_as = 'assistant-' || id WHERE id = ?"
        if database.execute(sql, (instance,)).rowcount != 1:
            sys.exit(f"there is no instance {instance}")


main(*sys.argv[1:])
