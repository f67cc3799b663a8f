#!/bin/sh
# Tries: to connect to SSH agents that administrators forwarded to this server
# Refused by: PrivateTmp=, ProtectHome= (and the modes of the sockets)
# Enforced where:
exec python3 - <<'P'
import glob, os, socket, sys
# sshd keeps forwarded agents in /tmp/ssh-*/agent.*, user managers in /run/user. A folder that can be seen, but not entered, tells
# that an administrator is here with an agent: that is seen, not used.
seen = glob.glob("/tmp/ssh-*")
for path in glob.glob("/tmp/ssh-*/agent.*") + glob.glob("/run/user/*/*agent*") + glob.glob("/run/user/*/*/*agent*"):
    with socket.socket(socket.AF_UNIX) as agent:
        agent.settimeout(2)
        try:
            agent.connect(path)
            agent.sendall(b"\0\0\0\1\x0b")
            if agent.recv(5):
                sys.exit(print(f"{path} answered") or 0)
        except OSError:
            pass
if any(os.lstat(path).st_uid != os.getuid() for path in seen):
    sys.exit(print(f"sees that somebody has a forwarded agent: {seen[0]}") or 0)
print("finds no agent")
sys.exit(1)
P
