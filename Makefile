# The whole vocabulary: demo, test, lint, bench, bench-retrieval, clean. Each sets up what it needs, given Python and npm.
.PHONY: demo test lint bench bench-retrieval clean

UV := $(or $(shell command -v uv),$(CURDIR)/.tools/bin/uv)
RUN := $(UV) run --no-sync
RETRIEVAL = $(UV) pip install --quiet --python .tools/retrieval --group retrieval --editable '.[postgres,embedded]'

demo: .venv/ready
	@$(RUN) supabase-memory demo $(ARGS)

# Many processes import the same: what one has compiled the others read, whatever the environment says.
test: .venv/ready tests/services/node_modules/ready
	PYTHONDONTWRITEBYTECODE= $(RUN) pytest -n 4 --dist loadfile --no-loadscope-reorder $(ARGS)

lint: .venv/ready
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	$(RUN) lint-imports

bench: .venv/ready tests/services/node_modules/ready
	$(RUN) python -m benchmarks $(ARGS)

# Its data set is not part of this repository: make bench-retrieval DATA=path/to/locomo10.json [ARGS="--limit 1"]
bench-retrieval: $(if $(DATA),.tools/retrieval/ready)
	$(if $(DATA),,$(error say where the data is, for example DATA=locomo/data/locomo10.json, after \
	  git clone --depth 1 https://github.com/snap-research/locomo))
	.tools/retrieval/bin/python -m benchmarks.retrieval $(DATA) $(ARGS)

clean:
	rm -rf .venv .tools .demo dist build tests/services/node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

.venv/ready: $(UV) pyproject.toml uv.lock
	$(UV) sync --frozen --all-extras --compile-bytecode
	@touch $@

# In an environment of its own, as torch is large. Its build without CUDA is a tenth of the other, which stands in for it
# where the index of such builds cannot be reached.
.tools/retrieval/ready: $(UV) pyproject.toml
	$(UV) venv --quiet --allow-existing .tools/retrieval
	$(RETRIEVAL) --torch-backend cpu || $(RETRIEVAL)
	@touch $@

# Exact versions, and no lock file: a lock made on one platform lacks the binaries of the others.
tests/services/node_modules/ready: tests/services/package.json
	npm install --prefix tests/services --no-package-lock --no-audit --no-fund
	@touch $@

$(CURDIR)/.tools/bin/uv:
	python3 -m venv .tools
	.tools/bin/python -m pip install --quiet uv
