"""many.py FILE <SPEC     makes many rows of one in a running server's SQLite file: SPEC is JSON, a list of {table, count, columns}.

The table's only row is the first of `count`; the others are its copies, but for `columns`: SQL expressions of the row's number n, or
lists that begin with the second row's value. Through the API this many would take minutes.
"""

import json
import sqlite3
import sys


def main(file: str) -> None:
    with sqlite3.connect(file, timeout=30, isolation_level=None) as database:
        database.execute("BEGIN IMMEDIATE")
        for wanted in json.load(sys.stdin):
            table, columns = wanted["table"], wanted["columns"]
            if (there := database.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]) != 1:
                sys.exit(f"{table} has {there} rows, not the one to copy")
            names = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
            if unknown := columns.keys() - set(names):
                sys.exit(f"{table} has no {', '.join(unknown)}")
            lists = {name: value for name, value in columns.items() if isinstance(value, list)}
            database.create_function("listed", 2, lambda name, n, lists=lists: lists[name][n - 2])
            columns |= {name: f"listed('{name}', n)" for name in lists}
            # A column that is counted up by itself is left to that.
            kept = [name for name in names if columns.get(name) != ""]
            values = ", ".join(columns.get(name, f'"{name}"') for name in kept)
            database.execute(
                f'WITH RECURSIVE number(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM number WHERE n < ?) '
                f'INSERT INTO "{table}" ({", ".join(kept)}) SELECT {values} FROM "{table}", number',
                (wanted["count"],),
            )
        database.execute("COMMIT")


main(*sys.argv[1:])
