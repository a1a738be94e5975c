PYTHON := .venv/bin/python
RUN := runs/latest

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\#.*/\1/p' $(MAKEFILE_LIST))

help: ## what there is to make
	@echo 'A log-structured virtual disk with snapshots: specification, reference engine, conformance kit.'
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

setup: ## set the machine up: packages, .venv, TLC (every other target does it too)
	@tools/setup

run: setup ## the main job: check the contract, run the engine through 200 traces, judge every one by the model and by TLC, inside and out
	@$(PYTHON) -m modelcheck specs VirtualDisk-ack VirtualDisk-prefix VirtualDisk-block
	@$(PYTHON) -m conformance run --target refmodel --traces 200 --oracle model,tlc --report $(RUN) $(ARGS)

test: setup ## all tests (under 15 minutes on 2 cores)
	@$(PYTHON) -m pytest -q -n 2 tests/refmodel tests/conformance tests/modelcheck tests/crosscheck tests/experiments $(ARGS)

lint: setup ## ruff, mypy and the layers of imports
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check --quiet .
	@.venv/bin/mypy refmodel conformance modelcheck crosscheck experiments
	@.venv/bin/lint-imports --no-cache

serve-setup: setup ## what `refmodel serve` and its tests need: nbdkit, fio, qemu-utils, libnbd-bin
	@tools/setup serve

serve-test: serve-setup ## real NBD clients on a served disk: fio, qemu-io, qemu-img, nbdcopy, nbdinfo, mkfs.ext4
	@$(PYTHON) -m pytest -q tests/serve $(ARGS)

experiments: setup ## the published experiments, reproduced: snapshots, chains, failures, caches; a report in runs/experiments (under 20 minutes)
	@tools/setup serve || echo 'experiments: going on without; what needs them is not run' >&2
	@$(PYTHON) -m experiments $(ARGS)

kill: setup ## kill the engine 500 times a layout; nothing acknowledged may be lost
	@$(PYTHON) -m refmodel.bench.runner.kill_test 500

selftest: setup ## plant every bug in the engines, run 40 small targets that are wrong; each must be found, soon and short
	@$(PYTHON) -m conformance selftest $(ARGS)

selftest-full: setup ## the same, with scrub and crash states of all, and honest targets of all crash profiles through 100,000 operations each (an hour: nightly)
	@$(PYTHON) -m conformance selftest --full $(ARGS)
	@$(PYTHON) -m conformance selftest --honest 100000

crashes: setup ## every crash state of every workload of up to three operations on the engine (about ten minutes; goes on where it was)
	@$(PYTHON) -m conformance run --target refmodel --crashes exhaustive --resume runs/crashes.jsonl $(ARGS)

engines: setup ## install the real engines, and test each against the contract
	@tools/setup engines
	@$(PYTHON) -m pytest -q -rs tests/engines $(ARGS)

specs: setup ## model-check the specifications; state counts have to be as listed in specs/models.toml
	@$(PYTHON) -m modelcheck specs $(ARGS)

apalache: setup ## type-check the specifications, and prove their invariants inductive (needs Apalache)
	@$(PYTHON) -m modelcheck apalache $(ARGS)

mutants: setup ## plant every bug in the specifications; each must be found by the property that guards against it
	@$(PYTHON) -m modelcheck mutants $(ARGS)

specs-nightly: setup ## the larger runs (hours)
	@$(PYTHON) -m modelcheck specs --group nightly $(ARGS)

specs-distributed: setup ## a safety model by TLC's distributed mode; HOSTS=a,b names the machines of the workers
	@$(PYTHON) -m modelcheck distributed $(if $(HOSTS),--hosts $(HOSTS)) $(ARGS)

mutation: setup ## change the specs mechanically, 210 times: how many changes are noticed (about half an hour, goes on where it was)
	@$(PYTHON) -m modelcheck mutation $(ARGS)

model-tests: setup ## make 60,000 tests of the contract's behaviours, replay them on the engine; what the traces reach
	@$(PYTHON) -m crosscheck model-tests $(ARGS)

proofs: setup ## check the Coq proofs from clean, with every gate, and build the certified checker
	@tools/setup proofs
	@$(MAKE) --no-print-directory -C proofs check
	@$(PYTHON) proofs/agreement.py
	@$(PYTHON) proofs/speed.py
	@$(PYTHON) -m pytest -q tests/proofs

proofs-mutants: setup ## change each definition of the proofs a little; a proof must break
	@tools/setup proofs
	@$(MAKE) --no-print-directory -C proofs mutants

trace-speed: setup ## how many events of traces TLC judges a second
	@$(PYTHON) -m crosscheck trace-speed $(ARGS)

clean: ## remove what was made
	rm -rf .venv build runs *.egg-info
