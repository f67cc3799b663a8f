#!/bin/sh
# Tries: to connect to the address at which clouds tell a machine's secrets
# Refused by: IPAddressDeny=
# Enforced where: BPF
# The kernel drops what is denied: a connection gets no answer, and a datagram gets EPERM, which tells this from an address where nobody is.
exec python3 - <<'P'
import errno, os, socket, sys
address = os.environ.get("METADATA") or "169.254.169.254"
family = socket.AF_INET6 if ":" in address else socket.AF_INET
with socket.socket(family, socket.SOCK_DGRAM) as datagram:
    try:
        datagram.sendto(b"x", (address, 9))
    except PermissionError as error:
        sys.exit(print(f"{address}: {error.strerror}") or 1)
    except OSError:
        pass
with socket.socket(family, socket.SOCK_STREAM) as stream:
    stream.settimeout(4)
    try:
        stream.connect((address, 80))
        sys.exit(print(f"connected to {address}") or 0)
    except PermissionError as error:
        sys.exit(print(f"{address}: {error.strerror}") or 1)
    except TimeoutError:
        sys.exit(print(f"nobody answered at {address}: there is none, or a firewall stands between") or 2)
    except OSError as error:
        if error.errno == errno.ECONNREFUSED:
            sys.exit(print(f"a packet went to {address} and came back: {error.strerror}") or 0)
        print(f"{address}: {error.strerror}; the server has no way there")
sys.exit(2)
P
