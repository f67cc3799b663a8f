#!/bin/sh
# Tries: to write anywhere but into its home: /etc, /opt, /usr, /var, /run, /srv and every other folder that lets it
# Refused by: ProtectSystem=strict
# Enforced where:
# Folders for temporary files have an attack of their own: leave_files_for_others.sh.
exec python3 - <<'P'
import os, sys, time
home = os.environ["OWN_HOME"]
skip = {"/proc", "/sys", "/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", home}
until = time.monotonic() + 12
tried = 0
def candidates():
    yield from ("/etc", "/opt", "/opt/tidepool", "/opt/tidepool/bin", "/usr/local/bin", "/usr/bin", "/var/lib", "/var/log", "/var/spool", "/run", "/run/lock", "/srv", "/boot", "/mnt", "/", os.path.dirname(home))
    for folder, folders, _ in os.walk("/"):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in skip and not os.path.islink(os.path.join(folder, name))]
        if time.monotonic() > until:
            return
        if os.access(folder, os.W_OK):
            yield folder
for folder in candidates():
    path = f"{folder}/hostile-{os.getpid()}"
    tried += 1
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.unlink(path)
        sys.exit(print(f"wrote to {folder}") or 0)
    except OSError:
        pass
for path in ("/etc/passwd", "/etc/hosts", "/etc/resolv.conf", "/opt/tidepool/bin/node"):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
        sys.exit(print(f"opened {path} for writing") or 0)
    except OSError:
        pass
print(f"{tried} folders, none can be written")
sys.exit(1)
P
