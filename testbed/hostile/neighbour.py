#!/usr/bin/env python3
"""neighbour.py     the assistant next door, whom the attacks of this folder are about. Run it as the neighbour's user, in a unit.

It has what a tenant must not get at: a value in its environment (by the unit) and on its command line, an open file, a listener at
127.0.0.1 on NEIGHBOUR_PORT, files that everybody may read in /tmp, /var/tmp and /dev/shm, shared memory of mode 0666 and an abstract
unix socket. It stops at SIGTERM, or after an hour, and removes what it made.
"""

import ctypes
import os
import signal
import socket
import sys

port = int(os.environ["NEIGHBOUR_PORT"])
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
signal.signal(signal.SIGALRM, lambda *_: sys.exit(0))
signal.alarm(3600)
libc = ctypes.CDLL(None, use_errno=True)
listener = socket.create_server(("127.0.0.1", port))
abstract = socket.socket(socket.AF_UNIX)
abstract.bind(f"\0neighbour-{port}")
abstract.listen()
memory = libc.shmget(0, 4096, 0o1666)
paths = [f"{folder}/neighbour-{port}" for folder in ("/tmp", "/var/tmp", "/dev/shm")]
os.umask(0o022)
try:
    for path in paths:
        with open(path, "w", encoding="utf-8") as file:
            file.write("of the neighbour\n")
    with open(paths[0], encoding="utf-8") as opened:
        while True:
            signal.pause()
finally:
    libc.shmctl(memory, 0, None)
    for path in paths:
        if os.path.exists(path):
            os.unlink(path)
