PYTHON := .venv/bin/python
RUN := runs/latest

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\#.*/\1/p' $(MAKEFILE_LIST))

help: ## list the targets
	@echo 'A log-structured virtual disk with snapshots: specification, reference engine, conformance kit.'
	@sed -n 's/^## \(.*\)/\n\1/p; s/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) \
	  | awk -F'|' 'NF == 2 { printf "%-26s%s\n", $$1, $$2; next } { print }'

## Start here

setup: ## install what every target needs: packages, .venv, TLC
	@tools/setup

run: setup ## check the contract, run the engine through 200 traces, judge each trace (3 to 5 min; ARGS='--seed 7' for others)
	@$(PYTHON) -m modelcheck specs VirtualDisk-ack VirtualDisk-tiny-prefix VirtualDisk-tiny-block
	@$(PYTHON) -m conformance run --target refmodel --traces 200 --seed 2 --oracle model,tlc --report $(RUN) $(ARGS)

test: setup ## run all tests that need no other engine or server (15 min)
	@tools/setup test
	@$(PYTHON) -m pytest -q -n 2 tests/refmodel tests/conformance tests/modelcheck tests/crosscheck tests/experiments tests/documents $(ARGS)

lint: setup ## check style (ruff), types (mypy, tests too) and the layers of imports (import-linter)
	@.venv/bin/ruff check --quiet .
	@.venv/bin/ruff format --check --quiet .
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-cache --no-logo 2>/dev/null

package: setup ## build the wheel and try it in an empty virtual environment
	@tools/package

clean: ## remove everything that was built or installed in this folder
	rm -rf .venv build runs *.egg-info

## Specifications (TLA+)

specs: setup ## model-check the specifications; results must be as listed in specs/models.toml (6 min)
	@$(PYTHON) -m modelcheck specs $(ARGS)

mutants: setup ## plant the listed bugs in the specifications; a property must find each (5 min)
	@$(PYTHON) -m modelcheck mutants $(ARGS)

apalache: setup ## check types, and prove invariants inductive (needs Apalache)
	@$(PYTHON) -m modelcheck apalache $(ARGS)

mutation: setup ## change the specifications mechanically, and count the changes that a property finds (nightly)
	@$(PYTHON) -m modelcheck mutation $(ARGS)

specs-nightly: setup ## run the larger models and mutants (hours)
	@$(PYTHON) -m modelcheck specs --group nightly $(ARGS)
	@$(PYTHON) -m modelcheck mutants --group nightly $(ARGS)

specs-distributed: setup ## run a safety model in TLC's distributed mode; HOSTS=a,b names the workers
	@$(PYTHON) -m modelcheck distributed $(if $(HOSTS),--hosts $(HOSTS)) $(ARGS)

model-tests: setup ## derive 60,000 tests from the contract and run them on the engine; measure what traces reach
	@$(PYTHON) -m crosscheck model-tests $(ARGS)

trace-speed: setup ## measure how many trace events per second TLC judges
	@$(PYTHON) -m crosscheck trace-speed $(ARGS)

## Proofs (Coq)

proofs: setup ## check all proofs from clean, with every gate; build the certified checker and the proved disk (7 min)
	@tools/setup proofs
	@$(MAKE) --no-print-directory -C proofs from-clean
	@mkdir -p build && cp -f proofs/build/proved-disk build/proved-disk
	@$(PYTHON) proofs/agreement.py & judges=$$!; \
	  $(MAKE) --no-print-directory -C proofs gates; gates=$$?; wait $$judges && exit $$gates
	@$(PYTHON) proofs/speed.py

proofs-test: serve-setup proved-disk ## run the proved disk under power cuts, kills and NBD clients; test the checker and the gates (5 min)
	@$(MAKE) --no-print-directory -C proofs all
	@$(PYTHON) -m pytest -q -n 2 --dist worksteal tests/proofs $(ARGS)

proved-disk: setup ## build build/proved-disk, a disk extracted from its proof
	@tools/setup proofs
	@$(MAKE) --no-print-directory -C proofs disk
	@mkdir -p build && cp -f proofs/build/proved-disk build/proved-disk

proofs-mutants: setup ## change definitions slightly; a proof must break for each change (nightly)
	@tools/setup proofs
	@$(MAKE) --no-print-directory -C proofs mutants

## Conformance kit

selftest: setup ## plant each known bug in the engines, and run 44 wrong targets; the kit must find each (5 min)
	@$(PYTHON) -m conformance selftest $(ARGS)

selftest-full: setup ## the same with every check, and correct targets through 100,000 operations each (nightly, 1 h)
	@$(PYTHON) -m conformance selftest --full $(ARGS)
	@$(PYTHON) -m conformance selftest --honest 100000

engine-mutation: setup ## change the engines mechanically, and count the changes that the kit finds (nightly; resumes)
	@$(PYTHON) -m crosscheck engine-mutation --unit-tests $(ARGS)

crashes: setup ## judge every crash state of every workload of up to three operations (10 min; resumes)
	@$(PYTHON) -m conformance run --target refmodel --crashes exhaustive --resume runs/crashes.jsonl $(ARGS)

engines: setup ## install qcow2, VMDK, LMDB, SQLite, redb, XFS, btrfs, and test each against the contract
	@tools/setup engines
	@$(PYTHON) -m pytest -q tests/engines $(ARGS)

kernel: setup ## test snapshots of Linux drivers under power cuts, in user-mode Linux (15 min)
	@tools/setup kernel || echo 'kernel: without these packages, its targets are not run' >&2
	@$(PYTHON) -m conformance.selftest.kernel $(ARGS) || [ $$? = 3 ]

kernel-smoke: setup ## the same in a minute, without injected faults
	@tools/setup kernel || echo 'kernel-smoke: without these packages, its targets are not run' >&2
	@$(PYTHON) -m conformance.selftest.kernel --traces 3 --fault none $(ARGS) || [ $$? = 3 ]

browser-test: setup ## render the HTML report in a browser and check it
	@tools/setup browser
	@$(PYTHON) -m pytest -q tests/browser $(ARGS)

## Serving and measuring

serve-setup: setup ## install NBD clients and a server to compare with: fio, qemu-utils, libnbd-bin
	@tools/setup serve

serve-test: serve-setup ## run real NBD clients on a served disk: fio, qemu-io, qemu-img, nbdcopy, ext4 (9 min)
	@$(PYTHON) -m pytest -q tests/serve $(ARGS)
	@FUZZ_MESSAGES=100000 $(PYTHON) -m pytest -q tests/refmodel/serving/test_fuzz.py

scale: setup ## measure the cost of single operations on disks of 64 MiB, 1 and 4 GiB with 0, 12 and 200 snapshots (15 min)
	@.venv/bin/refmodel bench --profile scale $(ARGS)

soak: setup ## serve a disk for four hours under load, snapshots and faults; memory and speed must not change (nightly)
	@PYTHONPATH=tests $(PYTHON) -m support.serving.soak 240

experiments: setup ## reproduce the published experiments; the report is in runs/experiments (under 20 min)
	@tools/setup serve || echo 'experiments: without these packages, their rows are not run' >&2
	@$(PYTHON) -m experiments $(ARGS)

kill: setup ## kill the engine, and a server, 500 times per layout; nothing acknowledged may be lost (6 min)
	@$(PYTHON) -m refmodel.bench.kill_test 500
	@KILLS=500 $(PYTHON) -m pytest -q tests/refmodel/serving/test_killed.py
