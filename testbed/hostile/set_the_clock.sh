#!/bin/sh
# Tries: to set the server's clock
# Refused by: ProtectClock=, CapabilityBoundingSet= (and the kernel, for whoever is not root)
# Enforced where:
# The time that it is already; an adjustment of nothing would be allowed to everybody, so a real call is made.
exec python3 - <<'P'
import sys, time
try:
    time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME))
except OSError as error:
    print(f"clock_settime: {error.strerror}")
    sys.exit(1)
print("set the clock")
P
