#!/bin/sh
# Tries: to read the log of the kernel: addresses, devices, what happens to others
# Refused by: ProtectKernelLogs=, SystemCallFilter=~@privileged (and kernel.dmesg_restrict)
# Enforced where:
if text=$(dmesg 2>/dev/null | head -n 1) && [ -n "$text" ]; then
  echo "dmesg showed the log"
  exit 0
fi
for file in /dev/kmsg /proc/kmsg; do
  if [ -n "$(timeout 1 head -c 1 $file 2>/dev/null)" ]; then
    echo "read $file"
    exit 0
  fi
done
if python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).klogctl(3, ctypes.create_string_buffer(64), 64) <= 0)' 2>/dev/null; then
  echo "syslog(2) showed the log"
  exit 0
fi
echo "refused: $(dmesg 2>&1 | head -n 1)"
exit 1
