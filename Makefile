# gradus. What a user types:
#
#   make demo     trains a small model for a minute and draws its pictures into build/demo
#   make test     proves every gradient and runs all tests, in both precisions
#   make          builds the libraries and the programs into build/
#   make docs     runs the lessons of docs/ and renews their output and figures
#   make bench    measures;   make install [PREFIX=/usr/local] [DESTDIR=];   make check-sanitize, check-bits;   make clean

MAKEFLAGS += --no-builtin-rules
CC     = cc
B      = build
PREFIX = /usr/local
CFLAGS = -O3 -g
WARN   = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-pass-failed # the last: clang, loops that SSE2 cannot hold
OPENMP = $(shell echo 'int main(void){return 0;}' | $(CC) -fopenmp -x c - -o /dev/null 2>/dev/null && echo -fopenmp)
SAY    = $(if $(V),:,echo '  ')# make V=1 shows the commands
Q      = $(if $(V),,@)
# The source defines the bits: no contraction, no reassociation; the last two flags change no value.
BITS   = -ffp-contract=off -fopenmp-simd -fno-math-errno -fno-trapping-math
FLAGS := -std=c11 -D_POSIX_C_SOURCE=200809L $(WARN) $(BITS) -Isrc -MMD -MP $(OPENMP) $(CFLAGS)
LINK  := $(CFLAGS) $(OPENMP) -lm
CHECK  = $(shell pkg-config --libs check 2>/dev/null || { echo 'int main(void){return 0;}' | \
           $(CC) -x c - -o /dev/null -lcheck -lsubunit 2>/dev/null && echo -lcheck -lsubunit -lrt -lpthread -lm; } || echo -lcheck -lpthread)

# tests/suite_memory.c counts what the library asks of the system; with the GNU linkers only.
ASKS   = malloc calloc realloc aligned_alloc posix_memalign free mmap munmap
COUNT  = $(if $(findstring linux,$(shell $(CC) -dumpmachine)),$(ASKS:%=-Wl,--wrap=%))

# The fast kernels are compiled once per instruction set of the target, each time with its flags.
TARGET := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
ISAS         = $(or $(ISAS_$(TARGET)),baseline)
ISAS_x86_64  = baseline avx2 avx512
ISAS_aarch64 = neon
avx2_flags   = -mavx2 -mfma
avx512_flags = -mavx512f -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512

SOURCES  = $(wildcard src/tensor/*.c src/autograd/*.c src/nn/*.c) src/tensor/kernels/reference.c src/tensor/kernels/select.c
OBJECTS  = $(SOURCES:%.c=%.o) $(ISAS:%=src/tensor/kernels/fast_%.o)
SUITES   = $(patsubst %.c,%.o,$(wildcard tests/suite_*.c tests/*support.c) tests/main.c $(CASES))
CASES    = $(wildcard tests/cases*.c)
ALONE    = bits soak ulp# programs of one file in tests/, in both precisions
LM       = $(patsubst %.c,%.o,$(wildcard examples/lm/*.c))
PROGRAMS = $(patsubst examples/%.c,$(B)/%,$(wildcard examples/*.c))

all: $(B)/libgradus.a $(B)/libgradus64.a $(B)/lm $(PROGRAMS)

# Two libraries, one per precision; their objects, and those of the tests, are in build/float and build/double.
double = -DGR_DOUBLE
define precision
$(B)/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	@$$(SAY)CC $$@
	$$(Q)$$(CC) $$(FLAGS) $$($(1)) -c $$< -o $$@
$(B)/$(1)/src/tensor/kernels/fast_%.o: src/tensor/kernels/fast.c
	@mkdir -p $$(@D)
	@$$(SAY)CC $$@
	$$(Q)$$(CC) $$(FLAGS) $$($(1)) $$($$*_flags) -DGR_ISA=$$* -c $$< -o $$@
$(B)/libgradus$(2).a: $$(OBJECTS:%=$(B)/$(1)/%)
	@$$(SAY)AR $$@
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $$^
$(B)/check$(2): $$(SUITES:%=$(B)/$(1)/%) $(B)/libgradus$(2).a
	@$$(SAY)LD $$@
	$$(Q)$$(CC) $$^ -o $$@ $$(COUNT) $$(CHECK) $$(LINK)
$(ALONE:%=$(B)/%$(2)): $(B)/%$(2): $(B)/$(1)/tests/%.o $(B)/libgradus$(2).a
	@$$(SAY)LD $$@
	$$(Q)$$(CC) $$^ -o $$@ $$(LINK)
$(B)/gradcheck$(3): $(B)/$(1)/tests/gradcheck.o $$(CASES:%.c=$(B)/$(1)/%.o) $(B)/libgradus$(2).a
	@$$(SAY)LD $$@
	$$(Q)$$(CC) $$^ -o $$@ $$(LINK)
endef
$(eval $(call precision,float,,32))
$(eval $(call precision,double,64,))
$(B)/gradcheck: | $(B)/gradcheck32 # it runs its float half

$(B)/lm: $(LM:%=$(B)/float/%) $(B)/libgradus.a
	@$(SAY)LD $@
	$(Q)$(CC) $^ -o $@ $(LINK)
$(B)/bench: $(patsubst %.c,$(B)/float/%.o,$(wildcard tests/bench*.c)) $(B)/libgradus.a
	@$(SAY)LD $@
	$(Q)$(CC) $^ -o $@ $(LINK)
$(PROGRAMS): $(B)/%: $(B)/float/examples/%.o $(B)/libgradus.a
	@$(SAY)LD $@
	$(Q)$(CC) $^ -o $@ $(LINK)

demo: WANT = demo
demo: deps
	@$(MAKE) --no-print-directory $(B)/lm
	@sh examples/demo.sh $(B)

test: WANT = test
test: deps
	@$(MAKE) --no-print-directory all $(B)/check $(B)/check64 $(B)/gradcheck $(B)/gradcheck32 $(B)/ulp $(B)/ulp64 \
	    $(B)/bits $(B)/bits64
	@sh tests/run.sh $(B)

include tests/checks.mk

bench: $(B)/bench
	$(B)/bench all

docs: WANT = demo
docs: deps
	@$(MAKE) --no-print-directory all
	@sh docs/refresh.sh $(B)

# Installs compiler, make, Check and gnuplot where they are missing; silent when all is there.
deps:
	@sh .ci/deps $(WANT)

HEADERS = $(addprefix tensor/,context.h mask.h profile.h random.h real.h tensor.h) $(addprefix autograd/,autograd.h explain.h ops.h) \
          $(addprefix nn/,attention.h checkpoint.h generate.h gpt.h layers.h optim.h schedule.h text.h)
install: all
	for h in gradus.h $(HEADERS); do mkdir -p "$$(dirname "$(DESTDIR)$(PREFIX)/include/gradus/$$h")" && \
	    cp "src/$$h" "$(DESTDIR)$(PREFIX)/include/gradus/$$h" || exit 1; done
	echo '#include "gradus/gradus.h"' > "$(DESTDIR)$(PREFIX)/include/gradus.h"
	mkdir -p "$(DESTDIR)$(PREFIX)/lib" "$(DESTDIR)$(PREFIX)/bin"
	cp $(B)/libgradus.a $(B)/libgradus64.a "$(DESTDIR)$(PREFIX)/lib"
	cp $(B)/lm "$(DESTDIR)$(PREFIX)/bin/gradus-lm"

clean:
	rm -rf $(B)

.PHONY: all demo test docs check-sanitize check-bits check-assembly bench deps install clean
-include $(wildcard $(B)/*/*/*.d $(B)/*/*/*/*.d $(B)/*/*/*/*/*.d)
