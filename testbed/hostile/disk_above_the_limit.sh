#!/bin/sh
# Tries: to write more than its disk limit, into its home and every other place that it can write
# Refused by: a project quota on the home, size= of TemporaryFileSystem=
# Enforced where: project quotas; elsewhere the sweep measures the home and raises an alert
# DISK_LIMIT_MIB is the limit; the attack writes 8 MiB more, and only where that is at most 256. All places together count: /tmp of
# the cell is a folder on the server's own file system, outside of the home.
exec python3 - <<'P'
import os, sys
limit = int(os.environ.get("DISK_LIMIT_MIB") or 0)
if not 0 < limit <= 256:
    sys.exit(print("DISK_LIMIT_MIB is not set, or too much to be tried") or 2)
block, written, answers = os.urandom(1 << 20), {}, []
for folder in (os.environ["SCRATCH"], "/tmp", "/var/tmp", "/dev/shm"):
    path = f"{folder}/hostile-disk-{os.getpid()}"
    try:
        with open(path, "wb", buffering=0) as file:
            for mib in range(limit + 8):
                if file.write(block) != len(block):
                    break
                written[folder] = mib + 1
            os.fsync(file.fileno())
    except OSError as error:
        answers.append(f"{folder}: {error.strerror}")
    finally:
        if os.path.exists(path):
            os.unlink(path)
above = [folder for folder, mib in written.items() if mib > limit]
if above:
    sys.exit(print(f"above {limit} MiB: " + ", ".join(f"{written[folder]} MiB in {folder}" for folder in above)) or 0)
print(f"wrote {sum(written.values())} MiB in all; " + "; ".join(answers))
sys.exit(1)
P
