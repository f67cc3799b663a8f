#!/bin/sh
# Tries: to see processes of other users at all
# Refused by: ProtectProc=invisible
# Enforced where:
exec python3 - <<'P'
import os, sys
others = []
for name in filter(str.isdigit, os.listdir("/proc")):
    try:
        if os.stat(f"/proc/{name}").st_uid != os.getuid():
            others.append(name)
    except OSError:
        pass
if others:
    sys.exit(print(f"sees {len(others)} processes of others, the first is {others[0]}") or 0)
print("sees its own processes only")
sys.exit(1)
P
