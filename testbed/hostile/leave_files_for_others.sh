#!/bin/sh
# Tries: to leave files where others find them, and to find theirs: /tmp, /var/tmp, /dev/shm
# Refused by: PrivateTmp=, TemporaryFileSystem=/dev/shm
# Enforced where:
# A folder that shows entries of other users is the one that all share.
exec python3 - <<'P'
import os, sys
answers = []
for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/dev/mqueue", "/dev/hugepages"):
    path = f"{folder}/hostile-{os.getpid()}"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        os.unlink(path)
        others = []
        for name in os.listdir(folder):
            try:
                if os.lstat(f"{folder}/{name}").st_uid != os.getuid():
                    others.append(name)
            except OSError:
                pass
    except OSError as error:
        answers.append(f"{folder}: {error.strerror}")
        continue
    if others:
        sys.exit(print(f"left a file in {folder}, where others have {others[0]}") or 0)
    answers.append(f"{folder}: its own alone")
print("; ".join(answers))
sys.exit(1)
P
