#!/bin/sh
# Tries: to change the server's name, by the kernel or by hostnamed
# Refused by: ProtectHostname=, CapabilityBoundingSet=, InaccessiblePaths=-/run/dbus (and polkit)
# Enforced where:
name=$(uname -n)
if python3 -c 'import socket; socket.sethostname(socket.gethostname())' 2>/dev/null; then
  echo "sethostname was allowed"
  exit 0
fi
if timeout 5 hostnamectl --no-ask-password set-hostname --transient "$name" 2>/dev/null; then
  echo "hostnamed took the name"
  exit 0
fi
echo "refused: $(timeout 5 hostnamectl --no-ask-password set-hostname --transient "$name" 2>&1 | tail -n 1)"
exit 1
