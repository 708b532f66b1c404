# What is proved beyond `make test`. Each target is a script of tests/ with a build directory of its own, and says its
# figure on its last line; docs/reliability.md tells what it proves, what it needs and how long it takes. What is missing
# here is said, and installed for `make test` alone.
.PHONY: check-sanitize check-matrix check-bits check-assembly check-soak fuzz check-install coverage check-analyze \
    check-threads check-valgrind check-faults

# The whole test suite under the address, undefined-behaviour and leak sanitizers.
SANITIZE = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all
check-sanitize:
	@sh tests/sanitizers.sh "$(CC)" "$(SANITIZE)"
	CK_TIMEOUT_MULTIPLIER=5 $(MAKE) --no-print-directory B=build/sanitize CFLAGS="$(SANITIZE)" test

# Every compiler, optimisation, C library and processor there is: no warning, no test fails, the same bits;
# ONLY=musl or ONLY="clang -O2" restricts it; a PATH that begins with ccache's links makes the next run shorter.
check-matrix:
	@sh tests/matrix.sh
# Of the same combinations, the bits alone.
check-bits: check-assembly
	@sh tests/matrix.sh --bits
# What the compiler made of the fast kernels.
check-assembly: $(B)/libgradus.a $(B)/libgradus64.a
	@sh tests/assembly.sh $(B) "$(CC)"

# 10,000 steps twice, the second time with 1,000 errors half-way: memory, files and bits stay what they were.
check-soak: $(B)/soak $(B)/soak64
	@OMP_WAIT_POLICY=passive $(B)/soak64
	@OMP_WAIT_POLICY=passive $(B)/soak

# The fuzz targets (tests/fuzz): programs that run files or seeds; with FUZZ_ENGINE=-fsanitize=fuzzer those of libFuzzer.
FUZZ = safetensors config options corpus mask graph graph64
# Random inputs, under the address and undefined-behaviour sanitizers where clang is, FUZZ_SECONDS for each target: no
# input breaks a promise of the loaders, of lm's options, of a corpus, of a mask, of any graph of ops.
fuzz: $(FUZZ:%=$(B)/fuzz/%) # where clang has no libFuzzer, these run
	@sh tests/fuzz.sh $(B) "$(or $(FUZZ_SECONDS),60)" $(FUZZ)

fuzz_objects = $(patsubst %,$(B)/$(1)/tests/fuzz/%.o,$(2) support $(if $(FUZZ_ENGINE),,replay)) $(B)/libgradus$(3).a
LM_WITHOUT_MAIN = $(patsubst %,$(B)/float/%,$(filter-out %/main.o,$(LM)))
GRAPH = $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/graph*.c)) masks
$(FUZZ:%=$(B)/fuzz/%) $(B)/seeds:
	@mkdir -p $(@D)
	@$(SAY)LD $@
	$(Q)$(CC) $(FUZZ_ENGINE) $^ -o $@ $(LINK)
$(B)/fuzz/safetensors: $(call fuzz_objects,float,safetensors)
$(B)/fuzz/corpus: $(call fuzz_objects,float,corpus)
$(B)/fuzz/config: $(LM_WITHOUT_MAIN) $(call fuzz_objects,float,config lm_support)
$(B)/fuzz/options: $(LM_WITHOUT_MAIN) $(call fuzz_objects,float,options lm_support)
$(B)/fuzz/mask: $(call fuzz_objects,float,mask masks)
$(B)/fuzz/graph: $(call fuzz_objects,float,$(GRAPH))
$(B)/fuzz/graph64: $(call fuzz_objects,double,$(GRAPH),64)
$(B)/seeds: $(B)/float/tests/fuzz/seeds.o $(B)/float/tests/fuzz/support.o $(B)/libgradus.a

# What `make install` and `make dist` give to a user, in paths with spaces: libraries, headers, pkg-config, manual pages.
check-install: all
	@sh tests/install.sh $(B) "$(CC)"

# What of src/ the test suite runs: at least 97 % of the lines and 90 % of the branches.
coverage:
	@sh tests/coverage.sh $(B) $(if $(findstring gcc,$(CC)),"$(CC)",gcc)

# Static analysis: gcc -fanalyzer, clang-tidy and cppcheck find nothing; no frame above 16 KiB.
check-analyze:
	@sh tests/analyze.sh
# The thread sanitizer: no race between contexts in two threads, or between the threads of one.
check-threads:
	@sh tests/threads.sh
# valgrind's memcheck on a short run: nothing read that was not set, no byte lost.
check-valgrind: $(B)/check $(B)/lm
	@sh tests/valgrind.sh $(B)
# Calls of the C library that lm makes fail, one after the other, or move half: one line, and whole files.
check-faults: $(B)/lm $(B)/lm-faults
	@sh tests/lm_faults.sh $(B)
