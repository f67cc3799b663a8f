#!/bin/sh
# Tries: to write settings of the kernel in /proc and /sys, and to make itself the last one to be ended when memory is short
# Refused by: ProtectKernelTunables=, CapabilityBoundingSet= (and the modes of the files)
# Enforced where:
# What is written is what stands there already, so that a success changes nothing.
for file in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/vm/overcommit_memory /proc/sys/net/ipv4/ip_forward \
  /proc/sys/fs/protected_symlinks /proc/sys/kernel/ns_last_pid /sys/kernel/mm/transparent_hugepage/enabled /sys/power/state; do
  [ -r "$file" ] || continue
  value=$(cat "$file" 2>/dev/null | sed 's/.*\[\(.*\)\].*/\1/')
  if { printf '%s\n' "$value" >"$file"; } 2>/dev/null; then
    echo "wrote $file"
    exit 0
  fi
done
if [ -w /proc/sysrq-trigger ]; then
  echo "may write /proc/sysrq-trigger"
  exit 0
fi
own=$(cat /proc/self/oom_score_adj)
if sh -c 'echo -900 >/proc/self/oom_score_adj' 2>/dev/null && [ "$own" -gt -900 ]; then
  echo "lowered its score for the OOM killer"
  exit 0
fi
echo "no setting can be written"
exit 1
