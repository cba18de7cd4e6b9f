.DEFAULT_GOAL := help
.PHONY: help venv demo test check golden faults bench serve screenshots clean lock proto
UV ?= uv

help:
	@sed -n 's/^## \([a-z]*\): /\1\t/p' $(MAKEFILE_LIST) | while IFS='	' read -r name text; \
		do printf 'make %-11s %s\n' "$$name" "$$text"; done

## venv: Makes .venv with all Python packages for the program, its tests and its benchmarks.
venv: .venv/stamp
	@:

.venv/stamp: requirements.lock pyproject.toml
	@tools/venv

## demo: Shows all watches at work on a simulated world, without the internet.
demo: venv
	@.venv/bin/mimawari demo

## test: Checks the code and runs all tests; installs missing database servers when run as root.
test: venv
	@tools/servers
	@tools/test

## check: Checks style and types without running anything.
check: venv
	@failed=0; \
		.venv/bin/python -m ruff check || failed=1; \
		.venv/bin/python -m ruff format --check || failed=1; \
		.venv/bin/python -m mypy || failed=1; \
		exit $$failed

## golden: Compares the responses from old databases with golden data; RENEW=1 renews them.
golden: venv
	@tools/servers
	@env -u COLUMNS -u FORCE_COLOR .venv/bin/python -m tests.golden $(if $(RENEW),renew)

## faults: Runs the tests of crashes and outages at full length.
faults: venv
	@tools/servers
	@MIMAWARI_FAULTS=full .venv/bin/python tools/run_tests.py -n 0 tests/faults tests/media/test_oracle.py \
		tests/app/test_demo_seen.py tests/kube/test_pods.py

## bench: Measures the program and its peers; settings are taken from the environment.
bench: venv
	@tools/servers
	@.venv/bin/python -m bench

## serve: Runs the program with its web interface.
serve: venv
	@.venv/bin/mimawari serve

## screenshots: Runs the demo and keeps a picture of each page in docs/pages (needs chromium).
screenshots: venv
	@.venv/bin/python tools/screenshots.py

## clean: Removes .venv and all caches; data of the program stay.
clean:
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis build dist
	@find src tests bench tools -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

## lock: Writes requirements.lock anew from pyproject.toml (needs uv); UPGRADE=name takes its newest release.
lock:
	@$(UV) pip compile --quiet --generate-hashes --universal --python-version 3.11 --all-extras \
		--group test --group bench --group build pyproject.toml -o requirements.lock \
		$(if $(UPGRADE),--upgrade-package $(UPGRADE))

## proto: Writes the code of the messages anew from proto/crawler.proto.
proto: venv
	@.venv/bin/python -m grpc_tools.protoc -Iproto --python_out=src/mimawari/wire \
		--pyi_out=src/mimawari/wire proto/crawler.proto
