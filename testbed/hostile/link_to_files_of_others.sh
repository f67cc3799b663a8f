#!/bin/sh
# Tries: to make hard links in its home to files of root and of the neighbour, for root to change later
# Refused by: ProtectSystem=strict and BindPaths= (links do not cross mounts), fs.protected_hardlinks
# Enforced where:
exec python3 - <<'P'
import os, sys
link, answers = os.environ["SCRATCH"] + "/hostile-link", []
for path in ("/etc/passwd", "/etc/shadow", "/usr/bin/su", os.environ["NEIGHBOUR_HOME"] + "/.openclaw/openclaw.json", os.environ["NEIGHBOUR_HOME"] + "/shared.txt"):
    try:
        os.link(path, link)
        os.unlink(link)
        sys.exit(print(f"made a hard link to {path}") or 0)
    except OSError as error:
        answers.append(error.strerror)
print(f"hard links: {answers[0]}")
sys.exit(1)
P
