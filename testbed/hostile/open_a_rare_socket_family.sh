#!/bin/sh
# Tries: to reach kernel code that servers hardly use, by socket families other than unix, inet and netlink
# Refused by: RestrictAddressFamilies=
# Enforced where: a kernel that has one of these families
# Most local holes of the kernel were in such families. A kernel without any of them has nothing to refuse.
exec python3 - <<'P'
import socket, sys
names = {9: "X25", 15: "KEY", 21: "RDS", 24: "PPPOX", 29: "CAN", 30: "TIPC", 31: "BLUETOOTH", 33: "RXRPC", 35: "PHONET", 36: "IEEE802154", 38: "ALG", 39: "NFC", 40: "VSOCK", 41: "KCM", 42: "QIPCRTR", 43: "SMC", 44: "XDP"}
for family, name in names.items():
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW):
        try:
            socket.socket(family, kind).close()
            sys.exit(print(f"opened a socket of AF_{name}") or 0)
        except OSError as error:
            # The filter answers EAFNOSUPPORT too, as a kernel without the family does.
            last = error
print(f"rare families: {last.strerror}")
sys.exit(1)
P
