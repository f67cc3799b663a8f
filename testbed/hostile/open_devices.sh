#!/bin/sh
# Tries: to open devices of the server: disks, memory, kernel log, kvm, fuse, tun, terminals, inputs
# Refused by: PrivateDevices=, DevicePolicy=closed
# Enforced where: a server that has such devices
exec python3 - <<'P'
import os, stat, sys
harmless = {"null", "zero", "full", "random", "urandom", "tty", "ptmx"}
opened, seen = [], []
for folder, folders, files in os.walk("/dev"):
    folders[:] = [name for name in folders if name not in ("char", "block", "fd")]
    for name in files:
        path = os.path.join(folder, name)
        try:
            status = os.stat(path)
        except OSError:
            continue
        if not (stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)) or name in harmless:
            continue
        if folder == "/dev/pts" and status.st_uid == os.getuid():
            continue
        seen.append(path)
        for flags in (os.O_RDONLY, os.O_WRONLY):
            try:
                os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY))
                opened.append(path)
                break
            except OSError:
                pass
if opened:
    sys.exit(print("opened " + ", ".join(opened[:4])) or 0)
for path in ("/dev/mem", "/dev/port", "/dev/kmsg", "/dev/sda", "/dev/vda", "/proc/kcore"):
    try:
        os.close(os.open(path, os.O_RDONLY))
        sys.exit(print(f"opened {path}") or 0)
    except OSError:
        pass
print(f"sees {len(seen)} devices that are not everybody's, none can be opened")
sys.exit(1)
P
