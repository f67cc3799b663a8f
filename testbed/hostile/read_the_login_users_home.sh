#!/bin/sh
# Tries: to list and read the home of the user as whom the platform logs in, and to learn its keys
# Refused by: ProtectHome= (and the 0700 of the home)
# Enforced where:
# Existence and modes alone say something, but only contents or names of files count as a success here.
for file in .ssh/authorized_keys .ssh/id_ed25519 .ssh/id_rsa .bash_history .profile .bashrc; do
  if head -c 1 "$LOGIN_HOME/$file" >/dev/null 2>&1; then
    echo "read $LOGIN_HOME/$file"
    exit 0
  fi
done
if listed=$(ls -A "$LOGIN_HOME" 2>/dev/null) && [ -n "$listed" ]; then
  echo "listed $LOGIN_HOME"
  exit 0
fi
echo "not read: $(ls -A "$LOGIN_HOME" 2>&1 | head -n 1)"
exit 1
