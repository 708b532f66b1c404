# gradus. What a user types:
#
#   make demo     trains a small model for a minute and draws its pictures into build/demo
#   make test     proves every gradient and runs all tests, in both precisions
#   make          builds the libraries and the programs into build/
#   make docs     runs the lessons of docs/ and renews their output and figures, and the manual pages
#   make bench    measures;   make install, uninstall [PREFIX=/usr/local] [DESTDIR=];   make dist;   make clean
#   make check-sanitize, check-bits, ...: tests/checks.mk

MAKEFLAGS += --no-builtin-rules
CC     = cc
B      = build
CFLAGS = -O3 -g
WARN   = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-pass-failed # the last: clang, loops that SSE2 cannot hold
OPENMP = $(shell echo 'int main(void){return 0;}' | $(CC) $(filter -m%,$(CFLAGS)) -fopenmp -x c - -o /dev/null 2>/dev/null && echo -fopenmp)
SAY    = $(if $(V),: ,echo '  ')# make V=1 shows the commands
Q      = $(if $(V),,@)
# What the compiler says of the target: of dumpmachine, CFLAGS=-m32 would change nothing.
MACROS := $(shell $(CC) -std=c11 $(CFLAGS) -dM -E -x c /dev/null 2>/dev/null)
# The source defines the bits, whatever CFLAGS say: no reassociation, no contraction (the last two flags change no
# value), and no float wider than float: in the registers of x87 it would be, and by -std=c11 on s390.
BITS   = -fno-associative-math -fno-reciprocal-math -fsigned-zeros -ffp-contract=off -fopenmp-simd -fno-math-errno -fno-trapping-math \
         $(if $(findstring __i386__,$(MACROS)),-msse2 -mfpmath=sse) $(if $(findstring __FLT_EVAL_METHOD__ 1,$(MACROS)),-fexcess-precision=fast)
# One set of objects for the static and the shared libraries: on x86-64 it costs no instruction, if a function may still
# be inlined where another program could put its own in its place.
PIC    = -fPIC -fno-semantic-interposition
FLAGS := -std=c11 -D_POSIX_C_SOURCE=200809L -D_FILE_OFFSET_BITS=64 $(WARN) -Isrc $(CHECK_HEADER:%=-I%) -MMD -MP $(OPENMP) $(CFLAGS) $(BITS) $(PIC)
# -funsafe-math-optimizations would link a start of the program that has the processor take subnormal numbers for 0.
LINK  := $(CFLAGS) -fno-unsafe-math-optimizations $(OPENMP) -lm
CHECK  = $(if $(CHECK_HEADER),,$(shell pkg-config --libs check 2>/dev/null || { echo 'int main(void){return 0;}' | \
           $(CC) -x c - -o /dev/null -lcheck -lsubunit 2>/dev/null && echo -lcheck -lsubunit -lrt -lpthread -lm; } || echo -lcheck -lpthread))
CHECK_HEADER =# tests/check where Check is not packaged: its stand-in is there

# tests/faults.c stands before the calls that its header names; with the GNU linkers only.
CALLS  = $(shell sed -n 's/^ *X(\([a-z_]*\)).*/\1/p' tests/faults.h)
WRAP   = $(if $(and $(findstring __linux__,$(MACROS)),$(findstring __LP64__,$(MACROS))),$(foreach call,$(CALLS),-Wl,--wrap=$(call),--wrap=$(call)64))

# The fast kernels are compiled once per instruction set of the target, each time with its flags; all for speed: for size
# clang leaves the tiles of a product in memory, and gcc the upper halves of AVX registers as they are, for which every SSE
# instruction then waits. Below -O2 gcc clears them by the second of these flags.
kernel_flags = $(if $(filter -Os -Oz,$(lastword $(filter -O%,$(CFLAGS)))),-O2) \
               $(if $(findstring __clang__,$(MACROS)),,-fexpensive-optimizations)
ISAS         = $(or $(if $(findstring __x86_64__,$(MACROS)),baseline avx2 avx512),$(if $(findstring __aarch64__,$(MACROS)),neon),baseline)
avx2_flags   = -mavx2 -mfma
avx512_flags = -mavx512f -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512

HEADERS  = gradus.h $(addprefix tensor/,context.h mask.h profile.h random.h real.h tensor.h) \
           $(addprefix autograd/,autograd.h explain.h ops.h) \
           $(addprefix nn/,attention.h checkpoint.h generate.h gpt.h layers.h optim.h schedule.h text.h)# what is installed
SOURCES  = $(wildcard src/tensor/*.c src/autograd/*.c src/nn/*.c) src/tensor/kernels/reference.c src/tensor/kernels/select.c
OBJECTS  = $(SOURCES:%.c=%.o) $(ISAS:%=src/tensor/kernels/fast_%.o)
SUITES   = $(patsubst %.c,%.o,$(wildcard tests/suite_*.c tests/*support.c) tests/faults.c tests/main.c $(CHECK_HEADER:%=%/check.c) $(CASES) $(CONFORM))
CASES    = $(wildcard tests/cases*.c)
CONFORM  = $(wildcard tests/conform_*.c)
ALONE    = bits soak ulp# programs of one file in tests/, in both precisions
LM       = $(patsubst %.c,%.o,$(wildcard examples/lm/*.c))
PROGRAMS = $(patsubst examples/%.c,$(B)/%,$(wildcard examples/*.c))

# The version stands in tensor/context.h. Shared libraries for ELF systems only.
VERSION := $(shell sed -n 's/.*define GR_VERSION *"\(.*\)"/\1/p' src/tensor/context.h)
MAJOR   := $(firstword $(subst ., ,$(VERSION)))
SHARED   = $(if $(findstring __ELF__,$(MACROS)),$(B)/libgradus.so.$(VERSION) $(B)/libgradus64.so.$(VERSION))

all: $(B)/libgradus.a $(B)/libgradus64.a $(SHARED) $(B)/lm $(PROGRAMS)

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
	$$(Q)$$(CC) $$(FLAGS) $$($(1)) $$(kernel_flags) $$($$*_flags) -DGR_ISA=$$* -c $$< -o $$@
$(B)/libgradus$(2).a: $$(OBJECTS:%=$(B)/$(1)/%)
	@$$(SAY)AR $$@
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $$^
# It exports the functions that the headers declare, each under a version of its precision, and calls its own.
$(B)/libgradus$(2).map: $$(HEADERS:%=src/%)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) -E -P $$($(1)) src/gradus.h -o $$@.i && { echo 'GRADUS$(2)_$(MAJOR) { global:' && \
	    sed -n '/^typedef/d; s/^[A-Za-z_].*[ *]\(gr_[a-z0-9_]*\)(.*/    \1;/p' $$@.i && echo 'local: *; };'; } > $$@
$(B)/libgradus$(2).so.$(VERSION): $$(OBJECTS:%=$(B)/$(1)/%) $(B)/libgradus$(2).map
	@$$(SAY)LD $$@
	$$(Q)$$(CC) -shared $$(filter %.o,$$^) -o $$@ -Wl,-soname,libgradus$(2).so.$(MAJOR) -Wl,-Bsymbolic-functions \
	    -Wl,--version-script=$(B)/libgradus$(2).map $$(LINK)
$(B)/check$(2): $$(SUITES:%=$(B)/$(1)/%) $(B)/libgradus$(2).a
	@$$(SAY)LD $$@
	$$(Q)$$(CC) $$^ -o $$@ $$(WRAP) $$(CHECK) $$(LINK)
$(ALONE:%=$(B)/%$(2)): $(B)/%$(2): $(B)/$(1)/tests/%.o $(B)/libgradus$(2).a
	@$$(SAY)LD $$@
	$$(Q)$$(CC) $$^ -o $$@ $$(LINK)
$(B)/conform$(2): $(B)/$(1)/tests/conform.o $$(CONFORM:%.c=$(B)/$(1)/%.o) $(B)/libgradus$(2).a
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
$(B)/lm-faults: $(LM:%=$(B)/float/%) $(B)/float/tests/faults.o $(B)/libgradus.a
	@$(SAY)LD $@
	$(Q)$(CC) $^ -o $@ $(WRAP) $(LINK)
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
	    $(B)/bits $(B)/bits64 $(B)/conform $(B)/conform64 $(FUZZ:%=$(B)/fuzz/%) $(B)/seeds $(B)/lm-faults
	@$(if $(WRAP),,WITHOUT="$$WITHOUT tests/lm_faults.sh ") sh tests/run.sh $(B)

include tests/checks.mk
include src/install.mk

bench: $(B)/bench
	$(B)/bench all

docs: WANT = demo
docs: deps
	@$(MAKE) --no-print-directory all
	@sh docs/man.sh $(B)
	@sh docs/refresh.sh $(B)

# Installs compiler, make, Check and gnuplot where they are missing; silent when all is there.
deps:
	@sh .ci/deps $(WANT)

clean:
	rm -rf $(B)

.PHONY: all demo test docs bench deps clean
-include $(wildcard $(B)/*/*/*.d $(B)/*/*/*/*.d $(B)/*/*/*/*/*.d)
