#!/bin/sh
# Tries: to leave a key in its user's keyring, which outlives the unit, and to read keys of others
# Refused by: SystemCallFilter=~@keyring, KeyringMode=private
# Enforced where: a kernel with keyrings, which containers often refuse
exec python3 - <<'P'
import ctypes, errno, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
calls = {"x86_64": (248, 250), "aarch64": (217, 219)}.get(platform.machine())
if not calls:
    sys.exit(print("the numbers of the system calls are not known for this machine") or 2)
add_key, keyctl = calls
key = libc.syscall(add_key, b"user", b"hostile-tenant", b"x", ctypes.c_size_t(1), ctypes.c_int(-4))  # the user's own keyring
if key > 0:
    libc.syscall(keyctl, 9, key, ctypes.c_int(-4))  # KEYCTL_UNLINK
    sys.exit(print("left a key in its user's keyring") or 0)
said = ctypes.get_errno()
others = []
try:
    uid = os.getuid()
    others = [line.split()[0] for line in open("/proc/keys") if int(line.split()[5]) != uid]
except OSError:
    pass
for number in others:
    buffer = ctypes.create_string_buffer(64)
    if libc.syscall(keyctl, 11, int(number, 16), buffer, 64) >= 0:  # KEYCTL_READ
        sys.exit(print(f"read the key {number} of another") or 0)
if said == errno.ENOSYS:
    sys.exit(print("this kernel has no keyrings") or 2)
print(f"add_key: {os.strerror(said)}")
sys.exit(1)
P
