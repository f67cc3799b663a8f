#!/usr/bin/env python3
"""scaleout.py BINARY     three replicas on one PostgreSQL behind nginx, in a network namespace:

  any request on any replica; a task runs once; a slot of the clock has one run; live events reach clients of other replicas; a
  WebSocket through nginx; a rolling restart under load answers everything, loses nothing, and closes sockets with 1012.

Exit code 69: this machine cannot give a network namespace, PostgreSQL or nginx. Needs root. Python 3.11, no packages.
"""

from __future__ import annotations

import http.client
import itertools
import socket
import sys
import threading
import time
import uuid
from contextlib import ExitStack
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ in the clone

from suite import invariants, processes
from suite.fakes import Assistant, BotPlatform, Frames, open_socket
from suite.site import OUTSIDE, Refused, Server, Site, call, enter_namespace, remove, room

EMPLOYEE, ADMIN = 9080, 9081  # nginx
PEOPLE, TASKS = 6, 40
PASSWORD = "a long password"
LOAD_SECONDS = 4.0  # before the first and after the last restart


def nginx(site: Site, folder: Path) -> Server:
    """As docs and README say it, with the three replicas behind it."""
    def side(name: str, port: int, ports: list[int]) -> str:
        members = "".join(f"server 127.0.0.1:{member} max_fails=1 fail_timeout=1s;" for member in ports)
        return f"""upstream {name} {{ {members} }}
        server {{ listen 127.0.0.1:{port}; client_max_body_size 16m; location / {{ proxy_pass http://{name}; proxy_http_version 1.1;
            proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;
            proxy_buffering off; proxy_read_timeout 600s; }} }}"""

    configuration = folder / "nginx.conf"
    configuration.write_text(f"""daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log warn;
    events {{ worker_connections 2000; }}
    http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
        uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
        map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
        {side("employees", EMPLOYEE, [replica.employee for replica in site.replicas])}
        {side("administrators", ADMIN, [replica.admin for replica in site.replicas])} }}""")
    return Server(["/usr/sbin/nginx", "-c", configuration], folder / "nginx.out")


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def told(text: str) -> None:
    print(f"ok  {text}", flush=True)


def check(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def populate(site: Site, token: str, assistant: Assistant) -> list[str]:
    """A server, instances, people with one each. Answers their tokens."""
    call(ADMIN, "POST", "/servers", token, {"id": "s1", "name": "nowhere", "host": "192.0.2.1"})
    tokens = []
    for number in range(PEOPLE):
        email = f"p{number}@example.test"
        user = call(ADMIN, "POST", "/users", token, {"email": email, "name": email, "password": PASSWORD})
        new = {"id": f"a{number}", "name": f"a{number}", "server_id": "s1", "model": "claude-sonnet-4-6", "gateway_url": assistant.url}
        call(ADMIN, "POST", "/assistant-instances", token, new)
        call(ADMIN, "PATCH", f"/instances/a{number}/assign", token, {"user_id": user["id"]})
        tokens.append(call(EMPLOYEE, "POST", "/auth/login", body={"email": email, "password": PASSWORD})["token"])
    return tokens


def any_request_on_any_replica(site: Site, people: list[str]) -> None:
    for one, other in itertools.product(site.replicas, repeat=2):
        token = call(one.employee, "POST", "/auth/login", body={"email": "p0@example.test", "password": PASSWORD})["token"]
        words = uuid.uuid4().hex
        answer = call(other.employee, "POST", "/me/chat", token, {"instance_id": "a0", "message": words})
        check(answer["content"] == words, f"{answer}")
        history = call(one.employee, "GET", f"/me/chat/history?q={words}", token)
        check(history["total"] == 2, f"said at {other.number}, read at {one.number}: {history['total']} messages")
        call(one.employee, "POST", "/auth/logout", token)
        try:
            call(other.employee, "GET", "/me", token)
            check(False, "a session that was ended at one replica lives on at another")
        except Refused as refused:
            check(refused.code == "4010", str(refused))
    told("log in, talk, read and log out on any two of three replicas")


def tasks_run_once(site: Site, token: str, platform: BotPlatform) -> None:
    """Each asks the bot platform about a bot that was taken off its instance, once."""
    bots = []
    for number in range(TASKS):
        name = f"t{number}"
        call(ADMIN, "POST", "/assistant-instances", token, {"id": name, "name": name, "server_id": "s1"})
        bound = call(ADMIN, "POST", f"/instances/{name}/chat-bindings", token, {"bot_token": f"{1000 + number}:bot"})
        call(ADMIN, "DELETE", f"/instances/{name}/chat-bindings/{bound['id']}", token)
        bots.append((bound["id"], f"{1000 + number}:bot"))
    orders = [threading.Thread(target=call, args=(site.replicas[i % 3].admin, "POST", "/tasks", token, {"type": "clear_webhook", "payload": {"binding_id": bound}}))
              for i, (bound, _) in enumerate(bots)]
    for order in orders:
        order.start()
    for order in orders:
        order.join()
    deadline = time.monotonic() + 30
    done = lambda: int(site.database.ask("SELECT COUNT(*) FROM task WHERE type = 'clear_webhook' AND status = 'done'")[0][0])
    while done() < TASKS and time.monotonic() < deadline:
        time.sleep(0.1)
    check(done() == TASKS, f"{done()} of {TASKS} tasks are done")
    asked = [platform.calls[bot, "getWebhookInfo"] for _, bot in bots]
    check(asked == [1] * TASKS, f"a task ran not once: {asked}")
    told(f"{TASKS} tasks, made at three replicas at one moment, each ran once")


def events_cross(site: Site, token: str) -> None:
    """Whoever listens at one replica hears of what is done at another."""
    heard: dict[int, float] = {}
    ready = threading.Barrier(len(site.replicas) + 1)

    def listen(number: int, port: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
        connection.request("GET", "/api/v1/events", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        ready.wait()
        while line := answer.readline():
            if line.strip() == b"event: instance":
                heard[number] = time.monotonic()
                break

    listeners = [threading.Thread(target=listen, args=(replica.number, replica.admin), daemon=True) for replica in site.replicas]
    for listener in listeners:
        listener.start()
    ready.wait()
    time.sleep(0.5)
    began = time.monotonic()
    call(site.replicas[0].admin, "PATCH", "/assistant-instances/a0", token, {"name": "renamed"})
    for listener in listeners:
        listener.join(15)
    check(len(heard) == len(site.replicas), f"only replicas {sorted(heard)} told of a change made at replica 0")
    told(f"an event of one replica reaches clients of all within {max(heard.values()) - began:.2f} s")


def socket_through_nginx(people: list[str], number: int = 0) -> Frames:
    ticket = call(EMPLOYEE, "POST", f"/me/instances/a{number}/ws-ticket", people[number])["ticket"]
    frames = open_socket("127.0.0.1", EMPLOYEE, f"/api/v1/me/instances/a{number}/ws?ticket={ticket}", seconds=60)
    hello = frames.hear()
    check(hello.get("event") == "relay.hello", f"{hello}")
    frames.say({"type": "req", "id": "q", "method": "models.list", "params": {}})
    answer = frames.hear()
    check(answer.get("id") == "q" and answer.get("ok") is True, f"{answer}")
    return frames


def rolling_restart(site: Site, token: str, people: list[str]) -> None:
    """One after the other, while people talk and administrators write."""
    over, said, made, failures, lock = threading.Event(), [], [], [], threading.Lock()

    def talk(number: int) -> None:
        while not over.is_set():
            words = uuid.uuid4().hex
            try:
                call(EMPLOYEE, "POST", "/me/chat", people[number], {"instance_id": f"a{number}", "message": words})
                with lock:
                    said.append(words)
            except (OSError, http.client.HTTPException, Refused) as error:
                failures.append(f"chat: {error!r}")

    def write() -> None:
        while not over.is_set():
            email = f"{uuid.uuid4().hex}@example.test"
            try:
                call(ADMIN, "POST", "/users", token, {"email": email, "name": "x"})
                with lock:
                    made.append(email)
            except (OSError, http.client.HTTPException, Refused) as error:
                failures.append(f"user: {error!r}")

    load = [threading.Thread(target=talk, args=(number,)) for number in range(1, 4)] + [threading.Thread(target=write) for _ in range(2)]
    for thread in load:
        thread.start()
    sockets = [socket_through_nginx(people, number) for number in (0, 4, 5) for _ in range(2)]
    codes: list[int] = []
    waiters = [threading.Thread(target=lambda frames=frames: codes.append(frames.close_code()), daemon=True) for frames in sockets]
    for waiter in waiters:
        waiter.start()
    time.sleep(LOAD_SECONDS)
    ends = []
    for replica in site.replicas:
        ends.append(replica.end())
        replica.start()
        replica.wait()
        time.sleep(1.5)  # nginx looks again after a second
    for waiter in waiters:
        waiter.join(10)
    time.sleep(LOAD_SECONDS)
    over.set()
    for thread in load:
        thread.join()
    check(codes == [1012] * len(sockets), f"sockets were closed with {codes}")
    check(max(ends) < 12, f"a replica took {max(ends):.1f} s to end")
    time.sleep(2)  # the last of the request log
    kept = {row[0] for row in site.database.ask("SELECT content FROM chat_message WHERE role = 'assistant'")}
    users = {row[0] for row in site.database.ask("SELECT email FROM users")}
    check(not set(said) - kept, f"{len(set(said) - kept)} of {len(said)} answered chats are not stored")
    check(not set(made) - users, f"{len(set(made) - users)} of {len(made)} accounts that were answered are not there")
    check(not failures, f"{len(failures)} requests failed, such as {failures[:3]}")
    told(f"a rolling restart under load: {len(said)} chats, {len(made)} accounts, none failed, all there; {len(sockets)} sockets closed with 1012; "
         f"the slowest replica ended in {max(ends):.1f} s")


def clock_slots(site: Site) -> None:
    counted = site.database.ask("SELECT job_name, COUNT(*), COUNT(DISTINCT slot), COUNT(DISTINCT holder) FROM job_run WHERE slot IS NOT NULL GROUP BY job_name")
    check(bool(counted), "no job ran")
    for job, runs, slots, _ in counted:
        check(runs == slots, f"{job}: {runs} runs of {slots} slots")
    queue = next(row for row in counted if row[0] == "queueWorker")
    told(f"{sum(int(row[1]) for row in counted)} runs of {len(counted)} jobs, one per slot; queueWorker {queue[1]} in {queue[3]} processes")


def run(binary: Path, folder: Path) -> None:
    with ExitStack() as stack:
        assistant, platform = Assistant(OUTSIDE), BotPlatform()
        settings = {"TIDEPOOL_BOT_API_URL": platform.url, "TIDEPOOL_TRUSTED_PROXIES": "127.0.0.1",
                    "TIDEPOOL_PUBLIC_URL": f"http://127.0.0.1:{EMPLOYEE}", "TIDEPOOL_ADMIN_PUBLIC_URL": f"http://127.0.0.1:{ADMIN}"}
        site = Site(binary, folder, stack, 3, settings)
        proxy = nginx(site, folder)
        stack.callback(proxy.end)
        proxy.start()
        assert proxy.process
        check(all(processes.wait_until(lambda port=port: listens(port), proxy.process, 20) for port in (EMPLOYEE, ADMIN)), "nginx listens")
        token = site.login(ADMIN)
        people = populate(site, token, assistant)
        any_request_on_any_replica(site, people)
        tasks_run_once(site, token, platform)
        events_cross(site, token)
        socket_through_nginx(people)
        told("a WebSocket through nginx")
        rolling_restart(site, token, people)
        clock_slots(site)
        wrong = list(invariants.broken(site.database.ask))
        check(not wrong, "; ".join(wrong))
        told(f"{len(invariants.rules())} invariants hold")


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    enter_namespace()
    processes.stop_on_signals()
    folder = room()
    try:
        run(Path(arguments[0]).resolve(), folder)
    except (AssertionError, RuntimeError, OSError, Refused) as error:
        print(f"FAIL {error}", flush=True)
        return 1
    finally:
        remove(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
