#!/bin/sh
# Tries: to listen on a port below 1024, as the server itself would
# Refused by: CapabilityBoundingSet= (and the kernel, for whoever is not root)
# Enforced where:
exec python3 - <<'P'
import socket, sys
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    for port in (53, 80, 443, 1023):
        with socket.socket(socket.AF_INET, kind) as listener:
            try:
                listener.bind(("127.0.0.1", port))
                sys.exit(print(f"listened on {port}") or 0)
            except OSError as error:
                last = error
if open("/proc/sys/net/ipv4/ip_unprivileged_port_start").read().strip() != "1024":
    sys.exit(print("this server has other privileged ports") or 2)
print(f"ports below 1024: {last.strerror}")
sys.exit(1)
P
