#!/bin/sh
# Tries: to make a device node of the disk and of the memory in its home
# Refused by: CapabilityBoundingSet= (and the kernel, for whoever is not root)
# Enforced where:
for node in "b 8 0" "b 253 0" "b 254 0" "c 1 1" "c 1 11"; do
  if mknod "$SCRATCH/node" $node 2>/dev/null; then
    rm -f "$SCRATCH/node"
    echo "made the device node $node"
    exit 0
  fi
done
echo "refused: $(mknod "$SCRATCH/node" b 8 0 2>&1 | head -n 1)"
exit 1
