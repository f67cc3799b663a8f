#!/bin/sh
# Tries: to fill the journal, and to write lines in the name of other programs, by the sockets of journald
# Refused by: InaccessiblePaths=-/run/systemd/journal (what it writes to its own output has a rate limit)
# Enforced where:
# 200 short lines that claim to be of sshd. journald notes the real uid and unit beside them, but who reads a log seldom looks there.
exec python3 - <<'P'
import socket, sys
sent, answers = 0, []
for path in ("/run/systemd/journal/socket", "/run/systemd/journal/dev-log", "/dev/log"):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.settimeout(2)
        try:
            log.connect(path)
            for number in range(200):
                text = f"hostile tenant, line {number}"
                log.send(f"SYSLOG_IDENTIFIER=sshd\nPRIORITY=6\nMESSAGE={text}\n".encode() if path.endswith("socket") else f"<38>sshd[1]: {text}".encode())
                sent += 1
        except OSError as error:
            answers.append(f"{path}: {error.strerror}")
    if sent:
        sys.exit(print(f"wrote {sent} lines to {path} in the name of sshd") or 0)
print("; ".join(answers))
sys.exit(1)
P
