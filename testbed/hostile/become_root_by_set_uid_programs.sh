#!/bin/sh
# Tries: to run the set-uid and set-gid programs of the server with the rights of their owners
# Refused by: NoNewPrivileges=
# Enforced where:
# A program that waits for a password is looked at while it waits: if it runs as root, its holes are the tenant's. sudo, su and pkexec
# are also asked for a shell right away.
exec python3 - <<'P'
import os, stat, subprocess, sys, time
for command in (["sudo", "-n", "id", "-u"], ["pkexec", "--disable-internal-agent", "id", "-u"], ["su", "root", "-c", "id -u"]):
    try:
        said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=4)
        if said.stdout.strip() == "0":
            sys.exit(print(f"became root by {command[0]}") or 0)
    except (OSError, subprocess.TimeoutExpired):
        pass
found = []
for top in ("/usr", "/opt", "/snap", *(path for path in ("/bin", "/sbin") if not os.path.islink(path))):
    for folder, _, files in os.walk(top):
        for name in files:
            path = os.path.join(folder, name)
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_mode & 0o6000 and os.access(path, os.X_OK):
                found.append(path)
arguments = {"su": ["root"], "newgrp": ["root"], "gpasswd": ["root"], "ssh-agent": ["sleep", "2"]}
for path in found:
    reading, writing = os.pipe()
    try:
        child = subprocess.Popen([path, *arguments.get(os.path.basename(path), [])], stdin=reading, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    except OSError:
        continue
    gained, seen = "", 0
    for look in range(100):
        time.sleep(0.02)
        if look >= 10 and seen:
            break
        try:
            lines = dict(line.split(":\t", 1) for line in open(f"/proc/{child.pid}/status").read().splitlines() if ":\t" in line)
        except OSError:
            # With hidepid a process that runs as another cannot be seen any more by the one who started it. ssh-agent hides itself too, until
            # it has become what it starts.
            if child.poll() is not None:
                break
            gained = "it is somebody else's now" if look == 99 else ""
            continue
        seen += 1
        if lines["Name"] != os.path.basename(path)[:15]:
            continue
        uid, gid = lines["Uid"].split()[1], lines["Gid"].split()[1]
        if uid != str(os.getuid()) or gid != str(os.getgid()):
            gained = f"uid {uid}, gid {gid}"
            break
    os.close(writing)
    os.close(reading)
    try:
        child.kill()
    except OSError:
        pass
    try:
        child.wait(2)
    except subprocess.TimeoutExpired:
        pass
    if gained:
        sys.exit(print(f"{path} runs with other rights: {gained}") or 0)
print(f"{len(found)} set-uid and set-gid programs give nothing")
sys.exit(1)
P
