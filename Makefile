# The whole vocabulary: demo, test, lint, bench, clean. Each sets up what it needs, given Python and npm.
.PHONY: demo test lint bench clean

UV := $(or $(shell command -v uv),$(CURDIR)/.tools/bin/uv)
RUN := $(UV) run --no-sync

demo: .venv/ready
	@$(RUN) supabase-memory demo $(ARGS)

test: .venv/ready tests/services/node_modules/ready
	$(RUN) pytest $(ARGS)

lint: .venv/ready
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	$(RUN) lint-imports

bench: .venv/ready tests/services/node_modules/ready
	$(RUN) python -m benchmarks $(ARGS)

clean:
	rm -rf .venv .tools .demo dist build tests/services/node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

.venv/ready: $(UV) pyproject.toml uv.lock
	$(UV) sync --frozen --all-extras
	@touch $@

# Exact versions, and no lock file: a lock made on one platform lacks the binaries of the others.
tests/services/node_modules/ready: tests/services/package.json
	npm install --prefix tests/services --no-package-lock --no-audit --no-fund
	@touch $@

$(CURDIR)/.tools/bin/uv:
	python3 -m venv .tools
	.tools/bin/python -m pip install --quiet uv
