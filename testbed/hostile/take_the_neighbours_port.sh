#!/bin/sh
# Tries: to listen on the neighbour's port, at any address, and so to get what is meant for it while it restarts
# Refused by: SocketBindDeny=
# Enforced where: BPF and systemd 249 or later; elsewhere the platform asks who listens before it sends anything
# While the neighbour listens at 127.0.0.1, the other addresses of the same port are free.
exec python3 - <<'P'
import errno, os, socket, sys
port = int(os.environ["NEIGHBOUR_PORT"])
taken = 0
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::1"), (socket.AF_INET6, "::"), (socket.AF_INET, "127.0.0.2")):
    try:
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address, port))
            listener.listen()
            sys.exit(print(f"listened at {address} port {port}") or 0)
    except OSError as error:
        taken += error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
        last = error
if taken == 5:
    sys.exit(print(f"every address of port {port} is taken: {last.strerror}") or 2)
print(f"port {port}: {last.strerror}")
sys.exit(1)
P
