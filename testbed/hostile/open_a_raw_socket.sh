#!/bin/sh
# Tries: to read and forge packets by raw and packet sockets
# Refused by: CapabilityBoundingSet=, RestrictAddressFamilies= (and the kernel, for whoever is not root)
# Enforced where:
exec python3 - <<'P'
import socket, sys
tries = ((socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET6, socket.SOCK_RAW, 58), (socket.AF_PACKET, socket.SOCK_RAW, 0x0300), (socket.AF_PACKET, socket.SOCK_DGRAM, 0x0300))
for family, kind, protocol in tries:
    try:
        socket.socket(family, kind, protocol).close()
        sys.exit(print(f"opened family {family}, kind {kind}") or 0)
    except OSError as error:
        last = error
print(f"raw and packet sockets: {last.strerror}")
sys.exit(1)
P
