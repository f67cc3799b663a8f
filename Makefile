# Every command of the project. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tidepool
# Where cargo puts what it builds; CI keeps it outside the clone, so that the next run starts warm.
TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: help demo lab test unit flaky test-real torture fuzz lint fmt build release package openapi bench fresh clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 10

demo: lab ## build, then run the product with example data and simulated parts; Ctrl-C ends it (needs: Rust, Node)
	@exec $(TARGET)/debug/tidepool-lab demo

test: ## every test; PART="rust browser" for some of: setup web rust api docs sdk scaleout torture browser secrets; TEST=name for one (needs: Rust, Node, Python, apt; root for databases and the browser)
	@exec testbed/run.py $(if $(TEST),--test "$(TEST)",$(PART))

unit: ## the tests that need no root, no apt, no network and no browser, in two minutes once it is built (needs: Rust, Node)
	@exec testbed/run.py unit

flaky: ## the whole suite N=3 times, the first time beside a load; appends a line per run to testbed/flaky.md (needs what `make test` needs)
	@exec testbed/flaky.py $(N)

torture: build ## kills, restarts, full disks, clock jumps, host crashes and pulled cables under load, then whether anything is lost; MINUTES=10; then a day of 2,000 simulated assistants, optimised; FLEET=2000x24 (needs: Rust, Node, root)
	testbed/install.sh netns postgres faketime hosts nextest
	testbed/torture.py $(TARGET)/debug/tidepool --minutes $(or $(MINUTES),10)
	TIDEPOOL_TEST_FLEET=$(or $(FLEET),2000x24) cargo nextest run --cargo-profile torture --workspace --locked --test it --profile torture -E 'test(/^(day|crash_day)::/)'

fuzz: ## the property tests of what reads other programs' files, logs and frames, and of the planner, with CASES=20000 each instead of 256 (needs: Rust)
	PROPTEST_CASES=$(or $(CASES),20000) cargo nextest run --locked -p openclaw -p fleet --profile fuzz -E 'test(/::fuzz_/)'

lint: ## rustfmt, clippy with warnings as errors, the web and image linters, licences, script and repository checks (needs: Rust, Node, Python)
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	testbed/install.sh web
	npm --prefix web run lint
	testbed/install.sh hadolint
	$(CACHE)/hadolint/bin/hadolint packaging/Dockerfile
	testbed/lint.py
	testbed/licences.py

fmt: ## format the Rust and web sources in place
	cargo fmt --all
	testbed/install.sh web
	npm --prefix web run format

build: ## both web apps and the binary, development profile, in $(TARGET)/debug (needs: Rust, Node)
	testbed/install.sh web
	npm --prefix web run build
	cargo build --locked -p tidepool

lab: build ## the same with the program of the demo and the benchmarks, $(TARGET)/debug/tidepool-lab (needs: Rust, Node)
	cargo build --locked -p lab

release: ## both web apps and the optimised binary, in $(TARGET)/release (needs: Rust, Node; about 7 minutes cold)
	testbed/install.sh web
	npm --prefix web run build
	cargo build --locked --release -p tidepool

package: release ## the Debian package in $(TARGET)/debian, made by cargo-deb, which it installs; looked into, and tried on a Debian with systemd (needs: Rust, Node, dpkg; root for the trial)
	testbed/install.sh deb
	packaging/build.sh $(abspath $(TARGET))
	@packaging/try.sh $(abspath $(TARGET))/debian/tidepool_*.deb || { code=$$?; [ $$code = 69 ] && echo "package: not tried, see above" || exit $$code; }

test-real: ## the tests that need the real OpenClaw, which it installs from npm (needs: Rust, Node; 650 MB)
	@testbed/run.py real

openapi: ## write what the code describes, which tests compare: the OpenAPI documents and the registry in openapi/, and docs/roles.md (needs: Rust)
	cargo build --locked -p tidepool
	$(TARGET)/debug/tidepool openapi employee > openapi/employee.json
	$(TARGET)/debug/tidepool openapi admin > openapi/admin.json
	$(TARGET)/debug/tidepool registry > openapi/registry.json
	$(TARGET)/debug/tidepool roles > docs/roles.md

bench: release ## measure this machine: start, claims, tasks, pages, usage, forward, sockets, sweep, each beside its floor; the web apps (web), real hosts (hosts), what a cell costs (cell), a foreign log (copy); PART="tasks" for some (needs: Rust, Node; PostgreSQL too for its numbers)
	cargo build --locked --release -p lab
	@testbed/bench.sh $(TARGET)/release/tidepool-lab $(PART)

fresh: ## a fresh clone of the last commit, in an empty Debian tree, runs `make lint`, `make test` and `make demo` (needs: root, mount and PID namespaces, apt)
	@exec testbed/fresh.sh

clean: ## remove what was built here, and the caches of the tests in $(CACHE)
	rm -rf target web/node_modules web/*/node_modules web/*/dist web/test-results
	rm -rf $(CACHE)
