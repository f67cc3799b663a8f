#!/bin/sh
# Tries: to make system calls by io_uring, which no system call filter sees
# Refused by: SystemCallFilter=~io_uring_setup io_uring_enter io_uring_register
# Enforced where: a kernel that has io_uring switched on
exec python3 - <<'P'
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
ring = libc.syscall(425, 4, ctypes.create_string_buffer(120))  # io_uring_setup has this number on every architecture
if ring >= 0:
    sys.exit(print("made an io_uring") or 0)
said = ctypes.get_errno()
print(f"io_uring_setup: {os.strerror(said)}")
sys.exit(2 if said == errno.ENOSYS else 1)
P
