#!/bin/sh
# Tries: to mount something, directly or in a mount namespace of its own
# Refused by: RestrictNamespaces=, SystemCallFilter=~@mount, CapabilityBoundingSet=
# Enforced where:
mkdir -p "$SCRATCH/mount"
for try in "mount -t tmpfs hostile" "unshare -Urm mount -t tmpfs hostile" "mount --bind /etc"; do
  if $try "$SCRATCH/mount" 2>/dev/null; then
    umount "$SCRATCH/mount" 2>/dev/null
    rmdir "$SCRATCH/mount"
    echo "mounted by: $try"
    exit 0
  fi
done
# The newer interface, which older filters forget: fsopen("tmpfs"), number 430 on every architecture.
if python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(430, b"tmpfs", 0) < 0)' 2>/dev/null; then
  rmdir "$SCRATCH/mount"
  echo "fsopen was allowed"
  exit 0
fi
echo "refused: $(mount -t tmpfs hostile "$SCRATCH/mount" 2>&1 | head -n 1)"
rmdir "$SCRATCH/mount"
exit 1
