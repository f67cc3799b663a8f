#!/bin/sh
# Tries: to connect to abstract unix sockets of other users, which have no file and so no mode
# Refused by: nothing: they belong to the network, which the cell shares with the server
# Enforced where: a network namespace of its own, which the cell does not have
# What can be done there is what the listener allows: it has to ask who connects (SO_PEERCRED), and sees this user's uid.
exec python3 - <<'P'
import os, socket, sys
kinds = {1: socket.SOCK_STREAM, 2: socket.SOCK_DGRAM, 5: socket.SOCK_SEQPACKET}
reached = []
uid = os.getuid()
for line in open("/proc/net/unix").read().splitlines()[1:]:
    parts = line.split(maxsplit=7)
    if len(parts) < 8 or not parts[7].startswith("@"):
        continue
    with socket.socket(socket.AF_UNIX, kinds.get(int(parts[4], 16), socket.SOCK_STREAM)) as stream:
        stream.settimeout(1)
        try:
            stream.connect("\0" + parts[7][1:])
            peer = int.from_bytes(stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8], sys.byteorder)
        except OSError:
            continue
        if peer != uid:
            reached.append(parts[7])
if reached:
    sys.exit(print(f"connected to {len(reached)} abstract sockets of others, the first is {reached[0]}") or 0)
print("no abstract socket of others lets it in")
sys.exit(1)
P
