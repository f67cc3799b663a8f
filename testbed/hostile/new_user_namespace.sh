#!/bin/sh
# Tries: to become root in a user namespace of its own, from where much more of the kernel can be reached
# Refused by: RestrictNamespaces=
# Enforced where: user namespaces of users are switched on
for kind in -Ur -Urm -Urn -Urp -Um; do
  if said=$(unshare $kind id -u 2>/dev/null); then
    echo "unshare $kind: uid $said in a new namespace"
    exit 0
  fi
done
# The system call without the program: clone with CLONE_NEWUSER.
if python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x10000000) != 0)' 2>/dev/null; then
  echo "unshare(CLONE_NEWUSER) was allowed"
  exit 0
fi
echo "refused: $(unshare -Ur true 2>&1 | head -n 1)"
exit 1
