# Every target first provides what it needs (hack/bootstrap.sh); nothing but Python 3.11 has to be
# installed before, and a JDK 17 and Maven where apt cannot do it.

.DEFAULT_GOAL := help
.PHONY: help demo check test test-crash test-rest soak lint classes bench store-up store-down cluster-up cluster-down image reproduce dist release-notes audit docs docs-serve clean

# Some images forbid Python to keep what it has compiled. Then each of the thousand processes of the
# tests, and each command of the demo, would compile all modules anew: half a second each time.
unexport PYTHONDONTWRITEBYTECODE

# A new checkout has other times of its files and the same contents, which mypy goes by in the end.
export MYPY_CACHE_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sluice/mypy

BIN := .venv/bin
STORE := PYTHONPATH=hack $(BIN)/python -m localstore
KIND = $(if $(CLUSTER),--cluster)
KUBERNETES := PYTHONPATH=hack $(BIN)/python -m localcluster

help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | \
	  awk -F ':.*## ' '{ printf "  make %-13s %s\n", $$1, $$2 }'

demo: ## Copy streams on a real Pravega and watch
	@hack/bootstrap.sh demo

test: ## Lint, then all tests: unit, integration, end to end
	@hack/bootstrap.sh
	@$(MAKE) --no-print-directory --jobs=2 lint classes
	@$(BIN)/python hack/lanes.py

check: ## Lint, and the unit tests that what was changed concerns
	@hack/bootstrap.sh python
	@$(MAKE) --no-print-directory lint
	@$(BIN)/pytest --testmon-forceselect -q -m "not exhaustive and not search" tests/unit

test-crash: ## The whole crash tables: each process killed at each step of copies and archives
	@hack/bootstrap.sh
	@$(MAKE) --no-print-directory classes
	@$(BIN)/python hack/lanes.py -m crash

test-rest: ## What make test leaves out of many alike
	@hack/bootstrap.sh
	@$(MAKE) --no-print-directory classes
	@SLUICE_SEARCH=20 $(BIN)/python hack/lanes.py -m "(exhaustive or search or hypothesis) and not crash"

soak: ## Follow a source for an hour: exactly, in the same memory, with a short journal
	@hack/bootstrap.sh
	@$(MAKE) --no-print-directory classes
	@$(BIN)/pytest -m soak

lint: ## Style, types, layers, generated code
	@hack/bootstrap.sh python
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@MYPYPATH=tests $(BIN)/mypy tests/conftest.py $(wildcard hack/*.py tests/bench/*.py tests/bench/*/*.py)
	@$(BIN)/lint-imports
	@$(BIN)/python hack/genproto.py --check
	@$(BIN)/python hack/gencrds.py --check
	@$(BIN)/python hack/gencatalogue.py --check
	@$(BIN)/python hack/gengitops.py --check
	@$(BIN)/python hack/genman.py --check
	@$(BIN)/python hack/gendashboard.py --check
	@$(BIN)/python hack/genvalues.py --check
	@$(BIN)/python hack/licences.py

classes: # so that the JVMs of the tests start in half the time
	@hack/bootstrap.sh
	@$(BIN)/python hack/classes.py

bench: ## Measure against the official Java client, and the operator (ONLY=engine, archives, scopes, follow, queries, operator or scale)
	@hack/bootstrap.sh
	@PYTHONPATH=hack:tests $(BIN)/python -m bench $(if $(ONLY),--only $(ONLY))

store-up: ## Start a Pravega to play with (CLUSTER=1: four processes, data survive)
	@hack/bootstrap.sh
	@$(STORE) up $(KIND)

store-down: ## Stop it (CLUSTER=1 likewise)
	@hack/bootstrap.sh python
	@$(STORE) down $(KIND)

cluster-up: ## Start a Kubernetes (SLUICE_KUBECONFIG, or docker and kind, or our own as root on Debian)
	@hack/bootstrap.sh python
	@$(KUBERNETES) up

cluster-down: ## Stop it (WIPE=1: remove its state as well)
	@hack/bootstrap.sh python
	@$(KUBERNETES) down $(if $(WIPE),--wipe)

image: ## Build localhost/sluice:dev and bring it to that Kubernetes
	@hack/bootstrap.sh python
	@$(KUBERNETES) image localhost/sluice:dev .

dist: ## Make the files of a release in dist/: packages, chart, manifests, SBOM, checksums
	@hack/bootstrap.sh python
	@PYTHONPATH=hack $(BIN)/python -m distribution build

release-notes: ## Print what the changelog says about a version (VERSION=1.2.3)
	@hack/bootstrap.sh python
	@PYTHONPATH=hack $(BIN)/python -m distribution notes $(VERSION)

audit: ## Ask for known weaknesses of the image's Python packages (needs a network)
	@hack/bootstrap.sh python
	@$(BIN)/python hack/audit.py

reproduce: ## Build the image twice, from nothing, and compare the two
	@hack/bootstrap.sh python
	@PYTHONPATH=hack $(BIN)/python -m localcluster.images.reproduce .

docs: ## Build the documentation's site in build/site
	@hack/bootstrap.sh python
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # with --quiet it would not count warnings

docs-serve: ## Serve that site, and build it again after each change
	@hack/bootstrap.sh python
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

clean: ## Remove what tools left in this directory; downloads stay in the user's cache
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .testmondata* .import_linter_cache \
	  artifacts build dist spark-warehouse
	@find operator hack tests -name __pycache__ -type d -prune -exec rm -rf {} +
	@rm -f operator/sluice/core/events/*.abi3.so
