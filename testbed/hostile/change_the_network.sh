#!/bin/sh
# Tries: to change addresses and links of the server by netlink
# Refused by: CapabilityBoundingSet= (and the kernel, for whoever is not root)
# Enforced where:
# The messages are written here and not by ip(8), which gives up by itself where it cannot drop capabilities.
exec python3 - <<'P'
import os, socket, struct, sys
def ask(kind, flags, body):
    """The error that the kernel answers with; 0 when it did what was asked."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.settimeout(3)
        netlink.send(struct.pack("=IHHII", 16 + len(body), kind, 5 | flags, 1, 0) + body)
        return -struct.unpack_from("=i", netlink.recv(4096), 16)[0]
try:
    lo = socket.if_nametoindex("lo")
    # lo is up, and is asked to be up. 127.66.66.66 is nobody's, and is taken away again.
    address = struct.pack("=BBBBI", 2, 32, 0, 254, lo) + struct.pack("=HH4s", 8, 2, bytes((127, 66, 66, 66)))
    answers = [ask(16, 0, struct.pack("=BxHiII", 0, 0, lo, 1, 1)), ask(20, 0x600, address)]
    if answers[1] == 0:
        ask(21, 0, address)
except OSError as error:
    sys.exit(print(f"netlink: {error.strerror}") or 1)
if 0 in answers:
    sys.exit(print("changed " + ("a link" if answers[0] == 0 else "the addresses") + " of the server") or 0)
print(f"netlink: {os.strerror(answers[0])}")
sys.exit(1)
P
