#!/bin/sh
# Tries: to see and use System V shared memory, semaphores and message queues of others
# Refused by: PrivateIPC= (RemoveIPC= takes its own away)
# Enforced where:
# What everybody may read (mode 0666) is attached too. Where nobody has such an object, there is nothing to be seen.
exec python3 - <<'P'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
uid, others = os.getuid(), []
for kind in ("shm", "sem", "msg"):
    lines = open(f"/proc/sysvipc/{kind}").read().splitlines()
    names = lines[0].split()
    for line in lines[1:]:
        row = dict(zip(names, line.split()))
        if int(row["uid"]) == uid:
            continue
        others.append(kind)
        if kind == "shm" and libc.shmat(int(row["shmid"]), None, 0) not in (None, ctypes.c_void_p(-1).value):
            sys.exit(print(f"attached the shared memory {row['shmid']} of {row['uid']}") or 0)
try:
    others += [name for name in os.listdir("/dev/mqueue") if os.stat(f"/dev/mqueue/{name}").st_uid != uid]
except OSError:
    pass
if others:
    sys.exit(print(f"sees {len(others)} IPC objects of others") or 0)
print("sees no IPC object of others")
sys.exit(1)
P
