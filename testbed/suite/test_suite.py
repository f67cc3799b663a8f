"""Tests of the runner itself: counts that come out wrong would make every other part's word worthless."""

from __future__ import annotations

import sys
import tempfile
import time
import unittest
from pathlib import Path

from . import counting
from .fuzz import left_out
from .parts import search_secrets
from .processes import run_shown
from .result import Result, exit_status, summary

NEXTEST_JUNIT = """<testsuites><testsuite name="store">
<testcase name="user::makes_one" classname="store"/><testcase name="user::on_postgres" classname="store"/>
<testcase name="user::breaks" classname="store"><failure type="test failure"/></testcase></testsuite></testsuites>"""


class Counting(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_nextest_takes_a_logged_skip_out_of_the_passes(self) -> None:
        junit, skips, result = self.folder / "junit.xml", self.folder / "skips.txt", Result("rust")
        junit.write_text(NEXTEST_JUNIT)
        skips.write_text("user::on_postgres: no PostgreSQL: not root\n")
        summary_line = "     Summary [   0.1s] 3 tests run: 2 passed, 1 failed, 2 skipped"
        counting.count_nextest(junit, [summary_line], skips, result)
        self.assertEqual((result.passed, result.failed, result.skipped), (1, 1, 3))
        self.assertIn("user::on_postgres: no PostgreSQL: not root", result.skips)
        self.assertEqual(result.failures, ["store user::breaks"])

    def test_vitest_adds_up_several_processes(self) -> None:
        result = Result("web")
        lines = [" FAIL  shared/src/money.test.ts > money > rounds", "\x1b[2m      Tests \x1b[22m 1 failed | 11 passed | 2 skipped (14)"]
        counting.count_vitest([*lines, " Tests  3 passed (3)"], result)
        self.assertEqual((result.passed, result.failed, result.skipped), (14, 1, 2))
        self.assertEqual(result.failures, ["shared/src/money.test.ts > money > rounds"])

    def test_playwright_counts_flaky_as_failed_and_names_skips(self) -> None:
        result = Result("browser")
        lines = ["Skipped: chromium › sso.spec.ts › signs in: no OpenID provider", "  1 flaky",
                 "    [chromium] › e2e/login.spec.ts:18:7 › signs in ─────", "  1 skipped", "  12 passed (30.1s)"]
        counting.count_playwright(lines, result)
        self.assertEqual((result.passed, result.failed, result.skipped), (12, 1, 1))
        self.assertEqual(result.failures, ["e2e/login.spec.ts:18:7 › signs in"])
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

    def test_the_closing_line_stands_alone(self) -> None:
        self.assertEqual(summary([Result("web", passed=2, failed=1)], ci=False).splitlines()[-1], "2 passed, 1 failed, 0 skipped")


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


if __name__ == "__main__":
    unittest.main()
