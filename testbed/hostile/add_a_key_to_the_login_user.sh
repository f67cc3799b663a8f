#!/bin/sh
# Tries: to add an SSH key to the authorized_keys of the login user or root
# Refused by: ProtectHome=, ProtectSystem=strict (and the modes of the files)
# Enforced where:
# The line is a comment, so that a success harms nobody; it is taken out again.
line="# hostile tenant was here"
for home in "$LOGIN_HOME" /root; do
  file=$home/.ssh/authorized_keys
  if { echo "$line" >>"$file"; } 2>/dev/null; then
    grep -vxF -- "$line" "$file" >"$SCRATCH/keys" && cat "$SCRATCH/keys" >"$file"
    rm -f "$SCRATCH/keys"
    echo "wrote to $file"
    exit 0
  fi
done
for folder in /etc/ssh /etc/ssh/sshd_config.d; do
  if touch "$folder/hostile.conf" 2>/dev/null; then
    rm -f "$folder/hostile.conf"
    echo "wrote to $folder"
    exit 0
  fi
done
echo "no authorized_keys and no folder of sshd can be written"
exit 1
