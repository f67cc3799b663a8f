"""Tests of the runner itself: counts that come out wrong would make every other part's word worthless."""

from __future__ import annotations

import re
import sqlite3
import sys
import tempfile
import time
import unittest
from contextlib import ExitStack
from pathlib import Path

from . import counting, doc_paths, invariants
from .fuzz import left_out
from .load import Load
from .machine import ROOT
from .one import part_of
from .parts import search_secrets
from .processes import run_shown
from .result import Result, exit_status, summary

NEXTEST_JUNIT = """<testsuites><testsuite name="store">
<testcase name="user::makes_one" classname="store" time="2.5"/><testcase name="user::on_postgres" classname="store"/>
<testcase name="user::breaks" classname="store"><failure type="test failure">thread 'user::breaks' panicked:
left: 1</failure></testcase></testsuite></testsuites>"""


class Counting(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_nextest_takes_a_logged_skip_out_of_the_passes(self) -> None:
        junit, skips, result = self.folder / "junit.xml", self.folder / "skips.txt", Result("rust")
        junit.write_text(NEXTEST_JUNIT)
        skips.write_text("user::on_postgres: no PostgreSQL: not root\n")
        counting.count_nextest(junit, skips, result)
        self.assertEqual((result.passed, result.failed, result.skipped), (1, 1, 1))
        self.assertIn("user::on_postgres: no PostgreSQL: not root", result.skips)
        self.assertEqual(result.failures, ["store user::breaks"])
        self.assertEqual(result.seen["store user::breaks"], ["thread 'user::breaks' panicked:", "left: 1"])
        self.assertEqual([name for _, name in sorted(result.tests)][-1], "store user::makes_one")

    def test_vitest_adds_up_several_processes(self) -> None:
        result = Result("web")
        lines = [" FAIL  shared/src/money.test.ts > money > rounds", "\x1b[2m      Tests \x1b[22m 1 failed | 11 passed | 2 skipped (14)"]
        counting.count_vitest([*lines, " Tests  3 passed (3)"], result)
        self.assertEqual((result.passed, result.failed, result.skipped), (14, 1, 2))
        self.assertEqual(result.failures, ["shared/src/money.test.ts > money > rounds"])

    def test_playwright_counts_flaky_as_failed_and_names_skips(self) -> None:
        result = Result("browser")
        lines = ["  1) [chromium] › e2e/login.spec.ts:18:7 › signs in ─────", "", "    Error: no such button", "",
                 "Slow: 12.3s  e2e/login.spec.ts › signs in", "Skipped: chromium › sso.spec.ts › signs in: no OpenID provider", "  1 flaky",
                 "    [chromium] › e2e/login.spec.ts:18:7 › signs in ─────", "  1 skipped", "  12 passed (30.1s)"]
        counting.count_playwright(lines, result)
        self.assertEqual((result.passed, result.failed, result.skipped), (12, 1, 1))
        self.assertEqual(result.failures, ["e2e/login.spec.ts:18:7 › signs in"])
        self.assertEqual(result.seen[result.failures[0]], ["Error: no such button"])
        self.assertEqual(result.tests, [(12.3, "e2e/login.spec.ts › signs in")])
        self.assertEqual(result.skips, ["chromium › sso.spec.ts › signs in: no OpenID provider"])

    def test_schemathesis_counts_operations(self) -> None:
        junit, result = self.folder / "employee.xml", Result("api")
        junit.write_text('<testsuites><testsuite><testcase name="GET /me"/><testcase name="POST /x">'
                         '<failure message="Server error&#10;500"/></testcase></testsuite></testsuites>')
        counting.count_schemathesis(junit, "employee", result)
        self.assertEqual((result.passed, result.failures), (1, ["employee POST /x: Server error | 500"]))


class Verdict(unittest.TestCase):
    def test_a_skip_fails_only_in_ci(self) -> None:
        result = Result("rust", passed=3)
        result.skip("postgres", "not root")
        self.assertEqual((exit_status([result], ci=False), exit_status([result], ci=True)), (0, 1))

    def test_a_command_that_ran_nothing_has_failed(self) -> None:
        silent, broken = Result("web"), Result("web", passed=2)
        silent.settle(0, "npm run test")
        broken.settle(1, "npm run test")
        self.assertEqual((silent.failed, broken.failed), (1, 1))

    def test_the_table_says_where_the_time_went_and_why_a_test_failed(self) -> None:
        result = Result("rust", seconds=61, passed=1, steps=[("cargo nextest run", 60.0)], tests=[(0.1, "quick"), (59.0, "slow")])
        result.fail("store breaks", ["left: 1"])
        text = summary([result], ci=False)
        self.assertLess(text.index("59.0  rust: slow"), text.index("0.1  rust: quick"))
        self.assertIn("60.0  cargo nextest run", text)
        self.assertIn("  rust: store breaks\n      left: 1", text)

    def test_the_closing_line_stands_alone(self) -> None:
        self.assertEqual(summary([Result("web", passed=2, failed=1)], ci=False).splitlines()[-1], "2 passed, 1 failed, 0 skipped")


class Choosing(unittest.TestCase):
    def test_one_test_is_found_in_its_part(self) -> None:
        self.assertEqual(part_of("keeps theme and language over a reload"), "browser")
        self.assertEqual(part_of("wait::tests::it_gives_up_and_shows_what_it_saw"), "rust")
        self.assertIsNone(part_of("nobody_has_written_this_test"))


class Loading(unittest.TestCase):
    def test_a_load_pauses_and_ends(self) -> None:
        folder, pids = Path(self.enterContext(tempfile.TemporaryDirectory())), set[int]()
        with ExitStack() as stack:
            load = Load(folder, stack, pids)
            self.assertGreaterEqual(len(pids), 2)
            with load.paused():
                states = {Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in pids}
                self.assertEqual(states, {"T"})
        self.assertFalse([pid for pid in pids if Path(f"/proc/{pid}").exists()])


class Searching(unittest.TestCase):
    def test_a_secret_in_a_log_is_found_and_not_repeated(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "trace").mkdir()
        known = folder / "trace" / "secrets.txt"
        known.write_text("first-secret\ns3cret-token\n")
        (folder / "trace" / "server.log").write_text("line one\nBearer s3cret-token\n")
        hits, searched = search_secrets(folder, known)
        self.assertEqual((hits, searched), (["trace/server.log:2 holds secret number 2 of secrets.txt"], 1))
        (folder / "trace" / "server.log").write_text("nothing\n")
        self.assertEqual(search_secrets(folder, known)[0], [])


class LeavingOut(unittest.TestCase):
    def test_only_what_cannot_be_tested(self) -> None:
        stream = {"responses": {"200": {"content": {"text/event-stream": {}}}}}
        document = {"paths": {"/api/v1/auth/logout": {"post": {}}, "/events": {"get": stream}, "/me": {"get": {}, "patch": {}}}}
        self.assertEqual(set(left_out(document)), {("POST", "/api/v1/auth/logout"), ("GET", "/events")})


class Documents(unittest.TestCase):
    KNOWN = {"crates", "crates/queue", "crates/queue/src", "crates/queue/src/task.rs", "docs", "docs/api.md", "testbed", "testbed/run.py"}

    def test_paths_that_lead_nowhere_are_named(self) -> None:
        text = "`docs/api.md`, `docs/old.md`\n`queue/src/task.rs` `task.rs` `job.rs`\n`queue/src/<noun>.rs` `queue/<folder>/task.py` `queue/tests`\n"
        self.assertEqual(list(doc_paths.missing(text, self.KNOWN)), [(1, "docs/old.md"), (2, "job.rs"), (3, "queue/<folder>/task.py"), (3, "queue/tests")])

    def test_a_part_of_a_name_is_no_path(self) -> None:
        self.assertEqual(list(doc_paths.missing("`ask.rs` `c/task.rs`", self.KNOWN)), [(1, "ask.rs"), (1, "c/task.rs")])

    def test_other_machines_and_commands_are_left_alone(self) -> None:
        text = "`/etc/tidepool/x.rs` `<data>/queue/x` `make docs/old.md` `text/html` `task::run`\n```\ncat `docs/old.md`\n```\n"
        self.assertEqual(list(doc_paths.missing(text, self.KNOWN)), [])


class Running(unittest.TestCase):
    def setUp(self) -> None:
        self.log = Path(self.enterContext(tempfile.TemporaryDirectory())) / "log"

    def test_output_and_exit_code(self) -> None:
        code, lines = run_shown(["sh", "-c", "echo one; printf two; exit 3"], self.log)
        self.assertEqual((code, lines), (3, ["one", "two"]))

    def test_a_stray_that_holds_the_pipe_does_not_hold_the_run(self) -> None:
        start = time.monotonic()
        code, _ = run_shown(["sh", "-c", "sleep 30 & echo started"], self.log)
        self.assertEqual(code, 0)
        self.assertLess(time.monotonic() - start, 10)

    def test_a_hanging_command_is_ended(self) -> None:
        code, _ = run_shown([sys.executable, "-c", "import time; time.sleep(30)"], self.log, timeout=0.5)
        self.assertEqual(code, 124)


class Invariants(unittest.TestCase):
    """A checker that finds nothing in a broken database would make torture.py's word worthless."""

    def setUp(self) -> None:
        self.database = sqlite3.connect(":memory:")
        words = {"{text}": "TEXT", "{int}": "INTEGER", "{real}": "REAL", "{serial}": "INTEGER PRIMARY KEY AUTOINCREMENT", "{now}": "0"}
        for migration in sorted((ROOT / "crates/store/migrations").glob("*.sql")):
            text = re.sub(r"\{\w+\}", lambda word: words[word[0]], migration.read_text(encoding="utf-8"))
            self.database.executescript(text)

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        return [tuple(str(value) for value in row) for row in self.database.execute(sql)]

    def put(self, table: str, **values: object) -> None:
        """A row with what is named; whatever else must not be NULL is empty or 0."""
        columns = {name: ("" if "TEXT" in kind else 0) for _, name, kind, needed, default, key in self.database.execute(f"PRAGMA table_info({table})")
                   if needed and default is None and (name != "id" or kind == "TEXT")}
        columns |= values
        marks = ", ".join("?" for _ in columns)
        self.database.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", list(columns.values()))

    def found(self) -> str:
        return " ".join(invariants.broken(self.ask))

    def test_an_empty_database_breaks_nothing(self) -> None:
        self.assertEqual(self.found(), "")
        self.assertGreater(len(invariants.rules()), 20)

    def test_what_is_broken_is_found(self) -> None:
        self.put("instance", id="i1", assigned_user_id="u1")
        self.assertIn("the user of the live binding is the instance's holder: i1", self.found())
        self.put("binding", id="b1", user_id="u1", instance_id="i1", origin="assigned")
        self.assertEqual(self.found(), "")
        self.put("task", id="t1", status="processing", attempts=1)
        self.assertIn("a running task has a worker and a lease, and no other task has: t1", self.found())
        self.database.execute("DELETE FROM task")
        self.put("request_log", request_id="r", token_name="i1", type=2, quota=5, prompt_tokens=3)
        self.assertIn("every request of the log is in the sums: i1", self.found())
        self.put("usage_slot", token_name="i1", requests=1, quota=4, prompt_tokens=3)
        self.assertIn("the sums by quarters are those of the log: i1", self.found())
        self.database.execute("UPDATE usage_slot SET quota = 5")
        self.assertEqual(self.found(), "")
        self.put("request_log", request_id="r", token_name="i1", type=1)
        self.assertIn("a request is in the log once: r", self.found())
        self.database.execute("DELETE FROM request_log WHERE type = 1")
        for number in (2, 3):
            self.put("instance", id=f"i{number}", id_key=f"i{number}", assigned_user_id="u2", gateway_port=1000 * number)
            self.put("binding", id=f"b{number}", user_id="u2", instance_id=f"i{number}", origin="claimed")
        self.assertIn("an employee has one claimed instance: u2", self.found())


if __name__ == "__main__":
    unittest.main()
