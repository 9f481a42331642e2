# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The two commands a newcomer needs, and short names for the rest. CMake does the work.

JOBS    ?= $(shell nproc)
# How long 'make soak' runs.
SECONDS ?= 1800
# And its last part, the sections that resume (scripts/soak-resumed).
RESUMED_SECONDS ?= 3600
# How many pools 'make hostile' mutates, a fifth of them the servers', and the seed.
COUNT   ?= 1000000
SEED    ?= $(shell date +%s)
# How many inputs 'make fuzz' tries.
RUNS    ?= 10000000
# How many random programs 'make soundness' writes, compiles and explores.
PROGRAMS ?= 5000
# In which builds 'make soundness' compiles them (test/attacks/soundness/soundness.py): all, or redo-O0 redo-O1 ….
BUILDS  ?=
# Of 'make bench': insertions into the hash map (the rest is in proportion), and which experiments:
# throughput parts counts ycsb latency restart justdo mod growth compile; none named: all.
ROUNDS  ?= 5
OPS     ?= 1000000
ONLY    ?=
# 'make reproduce': QUICK=1 for a quarter of an hour; ONLY="slpmt simpo" for some of its programs.
QUICK   ?=
# Of the keys that 'make slpmt' inserts.
SLPMT_SEED ?= 1
# Further options of 'make crash-report' (scripts/crash_report.py --help).
REPORT  ?=
# The compiler of 'make gcc'.
GCC     ?= g++
# Whose wheels 'make wheels' makes.
PYTHONS ?= python3.9 python3.10 python3.11 python3.12 python3.13
# The system's Python, which the Debian packages of the clients belong to.
PYTHON  ?= /usr/bin/python3

.DEFAULT_GOAL := help
.PHONY: help install build debug checked asan tsan test verify quick demo soak hostile soundness mutants stepping fuzz crash-report bench slpmt simpo stamp reproduce packages wheels site gcc arm64 format lint clean

help: ## this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

# What a build in the same folder has: the programs alone; and what 'make test' runs; and what 'make verify' does.
SLIM  := -DHOLDFAST_TESTS=OFF -DHOLDFAST_BENCHMARKS=OFF -DHOLDFAST_VERIFY=OFF
TESTS := -DHOLDFAST_TESTS=ON -DHOLDFAST_BENCHMARKS=OFF -DHOLDFAST_VERIFY=OFF -DHOLDFAST_PROGRAMS=ON
WHOLE := -DHOLDFAST_TESTS=ON -DHOLDFAST_BENCHMARKS=ON -DHOLDFAST_VERIFY=ON -DHOLDFAST_PROGRAMS=ON
# In build/release, what is there is not taken away.
NEW   := $(if $(wildcard build/release/CMakeCache.txt),,yes)
PART  := $(if $(NEW),$(SLIM))
BENCH := $(if $(NEW),-DHOLDFAST_TESTS=OFF) -DHOLDFAST_BENCHMARKS=ON -DHOLDFAST_PROGRAMS=ON
# The packages of these purposes, those that are missing: packages.txt.
PACKAGES := @scripts/install-packages

install: ## install the Debian packages that 'make test' needs and that are missing
	$(PACKAGES) build programs demo test bench plots site format

build: ## libraries, plugin, programs and examples in build/release; tests and benchmarks where they were configured
	$(PACKAGES) build programs
	@cmake --preset release $(PART) -DHOLDFAST_PYTHON=$(PYTHON)
	@cmake --build --preset release -j $(JOBS)
debug: build/debug   ## … in build/debug, without optimisation
checked: build/checked ## … in build/checked, optimised, every assertion on
asan:  build/asan    ## build and test under AddressSanitizer and UBSan
	@scripts/with-tmpfs ctest --preset asan -j $(JOBS)
tsan:  build/tsan    ## build and test under ThreadSanitizer
	@scripts/with-tmpfs ctest --preset tsan -j $(JOBS)

.PHONY: build/release build/debug build/checked build/asan build/tsan
build/release build/debug build/checked build/asan build/tsan: install
	@cmake --preset $(@F) $(WHOLE) -DHOLDFAST_PYTHON=$(PYTHON)
	@cmake --build --preset $(@F) -j $(JOBS)

# Some tests wait for clocks, clients and disks: one more runs than there are processors.
test: ## build, then show that this tree is whole; ctest's summary closes the run
	$(PACKAGES) build programs demo test site format
	@cmake --preset release $(TESTS) -DHOLDFAST_PYTHON=$(PYTHON)
	@cmake --build --preset release -j $(JOBS)
	@rm -f build/release/Testing/Temporary/CTestCostData.txt  # else the slowest would go first
	@scripts/with-tmpfs ctest --preset release -LE '^verify$$' -j $$(($(JOBS) + 1))

verify: build/release ## everything that a merge needs beyond 'make test'
	@rm -f build/release/Testing/Temporary/CTestCostData.txt
	@scripts/with-tmpfs ctest --preset release -L '^verify$$' -j $$(($(JOBS) + 1))

# What differs from this commit in src/ is what 'make quick' tries where no MODULE is named.
BASE ?= HEAD
quick: MODULE ?= $(shell { git diff --name-only $(BASE) -- src; git ls-files --others --exclude-standard src; } | sed -n 's,^src/\([^/]*\)/.*,\1,p' | sort -u)
quick: ## MODULE=redo: build and run what says most of src/redo within half a minute; MODULE left out: of what differs from BASE=HEAD
	@[ -n "$(strip $(MODULE))" ] || { echo "make quick: no module of src/ differs from $(BASE); name one: make quick MODULE=redo" >&2; exit 2; }
	@for module in $(MODULE); do [ -d "src/$$module" ] || \
	    { echo "make quick: src/ has no module '$$module'; it has: $$(cd src && echo */)" >&2; exit 2; }; done
	@grep -qs '^HOLDFAST_TESTS:BOOL=ON' build/release/CMakeCache.txt || \
	    { scripts/install-packages build programs demo test site format && cmake --preset release $(TESTS) -DHOLDFAST_PYTHON=$(PYTHON); }
	@scripts/with-tmpfs cmake --build --preset release -j $(JOBS) --target $(addprefix quick_,$(MODULE))

.PHONY: timing
timing: ## the dearest steps and tests of the last build and run, and what each module took; fails where one exceeds its budget
	@$(PYTHON) scripts/timing.py

soak: build/release hostile soundness ## pools, programs, then kills and power failures for SECONDS=1800, sections that resume for RESUMED_SECONDS=3600, another seed each time
	@scripts/with-tmpfs scripts/soak build/release/bin $(SECONDS) $(RESUMED_SECONDS)

hostile: ## COUNT=1000000 mutated pools under the sanitizers, from SEED or another each time
	$(PACKAGES) build test
	@cmake --preset asan $(WHOLE) -DHOLDFAST_PYTHON=$(PYTHON)
	@cmake --build --preset asan -j $(JOBS) --target hostile_pools hostile_server_auto hostile_server_mod
	@scripts/with-tmpfs nice build/asan/bin/hostile_pools --count $$(($(COUNT) * 8 / 10)) --seed $(SEED)
	@for engine in auto mod; do scripts/with-tmpfs nice build/asan/bin/hostile_server_$$engine \
	    --count $$(($(COUNT) / 10)) --seed $(SEED) || exit 1; done

soundness: ## PROGRAMS=5000 random programs under the oracle, from SEED or another each time
	$(PACKAGES) build test
	@cmake --preset release $(WHOLE) -DHOLDFAST_PYTHON=$(PYTHON)
	@cmake --build --preset release -j $(JOBS) --target holdfast-plugin
	@nice $(PYTHON) test/attacks/soundness/soundness.py --plugin build/release/lib/libholdfast-plugin.so \
	    --work build/release/test/attacks/soundness/soak --programs $(PROGRAMS) --seed $(SEED) --jobs $(JOBS) \
	    $(if $(BUILDS),--builds $(BUILDS))
	@$(if $(BUILDS),:,nice $(PYTHON) test/attacks/soundness/resumption.py --plugin build/release/lib/libholdfast-plugin.so --growth \
	    --work build/release/test/attacks/soundness/soak --programs $(PROGRAMS) --seed $(SEED) --jobs $(JOBS))

mutants: build/release ## every broken twin of the runtime, of mode power's log and of the analysis: more than half an hour ('make verify' tries every eighth of the first and the last)
	@scripts/with-tmpfs $(PYTHON) test/attacks/mutants/mutants.py --source . --build build/release \
	    --work build/release/test/attacks/mutants/work --json build/release/test/attacks/mutants/mutants.json --jobs $(JOBS)
	@scripts/with-tmpfs $(PYTHON) test/attacks/mutants/linked_mutants.py --source . --build build/release \
	    --work build/release/test/attacks/mutants/linked
	@$(PYTHON) test/attacks/power/mutants.py --source . --work build/release/test/attacks/power/mutants
	@scripts/with-tmpfs $(PYTHON) test/attacks/soundness/analysis_mutants.py --build build/release \
	    --work build/release/test/attacks/soundness/mutants --jobs $(JOBS)

stepping: ## PROGRAMS=5000 random functions killed at every instruction, from SEED
	$(PACKAGES) build test
	@cmake --preset release $(WHOLE) -DHOLDFAST_PYTHON=$(PYTHON) -DHOLDFAST_STEPPED_PROGRAMS=$(PROGRAMS) \
	    -DHOLDFAST_STEPPED_SEED=$(SEED)
	@cmake --build --preset release -j $(JOBS) --target stepping_clobber stepping_undo
	@cmake --preset release -UHOLDFAST_STEPPED_PROGRAMS -UHOLDFAST_STEPPED_SEED >/dev/null
	@for engine in clobber undo; do for mode in "" --pmem; do \
	    scripts/with-tmpfs nice build/release/bin/stepping_$$engine $$mode || exit 1; done; done

fuzz: ## the server's protocol under RUNS=10000000 inputs, one in four over a store
	$(PACKAGES) build test
	@cmake --preset release $(WHOLE) -DHOLDFAST_PYTHON=$(PYTHON)
	@cmake --build --preset release -j $(JOBS) --target kv_protocol_fuzz kv_session_fuzz
	@scripts/with-tmpfs $(PYTHON) apps/kv/tests/fuzz.py \
	    build/release/bin/kv_protocol_fuzz $$(($(RUNS) * 3 / 4)) \
	    build/release/bin/kv_session_fuzz $$(($(RUNS) / 4))

crash-report: build/release ## what the crash checker explores, and the mutants it must reject
	@scripts/with-tmpfs $(PYTHON) scripts/crash_report.py --build build/release $(REPORT)

bench: ## everything, engines and peers, ROUNDS=5 interleaved rounds: results/bench.{json,md}, plots
	$(PACKAGES) build programs demo bench plots
	@cmake --preset release $(BENCH) -DHOLDFAST_PYTHON=$(PYTHON)
	@cmake --build --preset release -j $(JOBS)
	@scripts/with-tmpfs $(PYTHON) bench/report/measure.py --build build/release --out results \
	    --rounds $(ROUNDS) --ops $(OPS) --only "$(ONLY)"

slpmt: ## SLPMT's study, simulated, crashed at every persist, from SLPMT_SEED=1: results/slpmt.{md,json,figures.json}, plots
	$(PACKAGES) build plots
	@cmake --preset release $(BENCH) -DHOLDFAST_PYTHON=$(PYTHON)
	@cmake --build --preset release -j $(JOBS) --target slpmt_study
	@$(PYTHON) -B research/slpmt/study/report.py --study build/release/bin/slpmt_study --out results --seed $(SLPMT_SEED)

simpo: ## SIMPO's figures 10 to 24, ROUNDS=5 interleaved rounds: results/simpo.{md,json}, plots
	$(PACKAGES) build programs bench simpo plots
	@cmake --preset release $(BENCH) -DHOLDFAST_PYTHON=$(PYTHON)
	@cmake --build --preset release -j $(JOBS) --target holdfast_command simpo_applications
	@scripts/with-tmpfs $(PYTHON) -B research/simpo_applications/report.py --bin build/release/bin --out results --rounds $(ROUNDS) --ssd-dir build

stamp: ## Clobber's figures 11 to 14 on vacation and yada, ROUNDS=5 interleaved rounds: results/stamp.{md,json}
	$(PACKAGES) build programs bench
	@cmake --preset release $(BENCH) -DHOLDFAST_PYTHON=$(PYTHON)
	@cmake --build --preset release -j $(JOBS) --target holdfast-vacation holdfast-yada
	@scripts/with-tmpfs $(PYTHON) -B research/stamp/report.py --build build/release --out results --rounds $(ROUNDS)

reproduce: ## every figure and table of the five papers on one page, results/index.html: a night, or QUICK=1; goes on where it was stopped
	$(PACKAGES) build programs demo test bench simpo plots
	@cmake --preset release $(BENCH) -DHOLDFAST_PYTHON=$(PYTHON)
	@cmake --build --preset release -j $(JOBS)
	@scripts/with-tmpfs $(PYTHON) -B research/reproduce/reproduce.py --build build/release --out results \
	    --size $(if $(QUICK),quick,whole) $(if $(ONLY),--only $(ONLY))

packages: ## Debian packages in build/packages: libholdfast-dev, holdfast-clang, holdfast-tools, holdfast-kv, holdfast-doc
	$(PACKAGES) build programs site packages
	@cmake --preset packages $(SLIM) -DHOLDFAST_PYTHON=$(PYTHON)
	@cmake --build --preset packages -j $(JOBS)
	@cd build/packages && rm -f *.deb && cpack

wheels: ## a wheel for each of PYTHONS that is there, tried in a clean environment: build/wheels
	$(PACKAGES) wheels
	@for python in $(PYTHONS); do \
	    if version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null); then \
	        $$python python/test/wheel_test.py --source . --build build/wheels/$$version --release build/wheels || exit 1; \
	    else echo "$$python: not there"; fi; done

site: ## the documentation as pages for a browser, links checked: build/site
	$(PACKAGES) site
	@$(PYTHON) -B scripts/site.py --out build/site

gcc: ## the core with GCC, without the plugin, and all of its tests, in build/gcc
	$(PACKAGES) build test
	@cmake -S . -B build/gcc -G Ninja -DHOLDFAST_COMPILER=OFF -DCMAKE_CXX_COMPILER=$(GCC) -DCMAKE_C_COMPILER=gcc \
	    -DCMAKE_BUILD_TYPE=Debug
	@cmake --build build/gcc -j $(JOBS)
	@scripts/with-tmpfs ctest --test-dir build/gcc --output-on-failure -j $(JOBS)

arm64: ## the libraries and their tests for ARM64, cross-built, run by qemu, in build/arm64
	$(PACKAGES) build test arm64
	@cmake --preset release $(PART) -DHOLDFAST_PYTHON=$(PYTHON)
	@cmake --build --preset release -j $(JOBS) --target holdfast-plugin
	@cmake --preset arm64
	@cmake --build --preset arm64 -j $(JOBS) --target core_tests
	@scripts/with-tmpfs ctest --preset arm64 -L '^(cross|kill)$$' -j $(JOBS)

demo: ## kill a server under load, over and over, and count what is lost
	@echo "demo 1/4: the packages that it needs, those that are missing"
	$(PACKAGES) build demo
	@echo "demo 2/4: configure build/release, for the server and the examples"
	@mkdir -p build
	@cmake --preset release $(PART) -DHOLDFAST_PYTHON=$(PYTHON) \
	    >build/demo.log 2>&1 || { cat build/demo.log; exit 1; }
	@echo "demo 3/4: compile them with $(JOBS) jobs: some minutes the first time; ninja counts"
	@cmake --build --preset release -j $(JOBS) \
	    --target holdfast-kv example_bank example_bank_undo example_numbers
	@echo "demo 4/4: run it"
	@scripts/with-tmpfs $(PYTHON) scripts/demo.py --bin build/release/bin

FORMATTER ?= clang-format-19
FORMAT ?= -i
format: ## clang-format on every C++ file (the inputs of compiler tests have lines of their own)
	@find include src apps bench research tools examples test python compiler/analysis compiler/transform compiler/plugin.cpp \
	    -name build -prune -o -name '*.[ch]pp' -print0 -o -name '*.[ch]' -print0 | \
	    xargs -0 $(FORMATTER) $(FORMAT)

lint: build/release ## clang-tidy on the libraries (advice; the tidy test is the rule)
	$(PACKAGES) format
	@run-clang-tidy-19 -quiet -p build/release -j $(JOBS) '/src/[a-z]*/[^/]*cpp$$'

clean: ## remove build/
	rm -rf build
