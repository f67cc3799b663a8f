#!/bin/sh
# Tries: to give itself the server by a container engine: docker, containerd, podman, crio
# Refused by: InaccessiblePaths= (and the modes of the sockets)
# Enforced where:
exec python3 - <<'P'
import socket, sys
answers = []
for path in ("/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock", "/run/snapd.socket", "/run/libvirt/libvirt-sock"):
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(3)
        try:
            stream.connect(path)
            sys.exit(print(f"connected to {path}") or 0)
        except FileNotFoundError:
            pass
        except OSError as error:
            answers.append(f"{path}: {error.strerror}")
if not answers:
    sys.exit(print("this server shows no container engine") or 1)
print("; ".join(answers[:2]))
sys.exit(1)
P
