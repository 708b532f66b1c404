# What is proved beyond `make test`. Each target is a script of tests/ with a build directory of its own, and says its
# figure on its last line; docs/reliability.md tells what it proves, what it needs and how long it takes.

# The whole test suite under the address, undefined-behaviour and leak sanitizers.
check-sanitize: deps
	$(MAKE) --no-print-directory B=build/sanitize CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all" test

# The same bits from gcc and clang, -O0 to -O3, any number of threads, every instruction set, and aarch64.
check-bits: check-assembly
	@sh tests/bits.sh
# What the compiler made of the fast kernels.
check-assembly: $(B)/libgradus.a $(B)/libgradus64.a
	@sh tests/assembly.sh $(B) $(CC)

# 10,000 steps twice, the second time with 1,000 errors half-way: memory, files and bits stay what they were.
check-soak: $(B)/soak $(B)/soak64
	@OMP_WAIT_POLICY=passive $(B)/soak64
	@OMP_WAIT_POLICY=passive $(B)/soak
