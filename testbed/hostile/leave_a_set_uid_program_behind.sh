#!/bin/sh
# Tries: to leave a set-uid program of its own where others find it: whoever starts it runs as this user
# Refused by: PrivateTmp=, TemporaryFileSystem=/dev/shm, ProtectSystem=strict (RestrictSUIDSGID= would refuse openat2, which OpenClaw needs)
# Enforced where:
# In its own home it can make one: nobody else gets in there, and inside a cell the bit is ignored (NoNewPrivileges).
exec python3 - <<'P'
import os, shutil, stat, sys
answers = []
for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/srv", os.path.dirname(os.environ["OWN_HOME"])):
    path = f"{folder}/hostile-set-uid-{os.getpid()}"
    try:
        shutil.copyfile("/bin/true", path)
        os.chmod(path, 0o6755)
        made = os.stat(path).st_mode & stat.S_ISUID and not os.statvfs(path).f_flag & os.ST_NOSUID
        shared = any(os.lstat(f"{folder}/{name}").st_uid != os.getuid() for name in os.listdir(folder))
    except OSError as error:
        answers.append(f"{folder}: {error.strerror}")
        continue
    finally:
        if os.path.exists(path):
            os.unlink(path)
    if made and shared:
        sys.exit(print(f"left a set-uid program in {folder}, where others keep files") or 0)
    answers.append(f"{folder}: " + ("its own alone" if made else "set-uid bits count for nothing"))
print("; ".join(answers))
sys.exit(1)
P
