/* What the fuzz targets share. A target is a file with LLVMFuzzerTestOneInput, which runs one input and aborts where a
 * promise is broken; it links with libFuzzer (clang) or with replay.c. What an input means is drawn from its bytes:
 * each draw takes some, and behind the end all are 0, the plainest choice everywhere. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include "gradus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts with the place and the condition. */
#define DEMAND(condition)                                                                 \
    do {                                                                                  \
        if (!(condition)) fuzz_abort(__FILE__, __LINE__, "%s does not hold", #condition); \
    } while (0)
#define DEMAND_SAYING(condition, ...)                                  \
    do {                                                               \
        if (!(condition)) fuzz_abort(__FILE__, __LINE__, __VA_ARGS__); \
    } while (0)
_Noreturn void fuzz_abort(const char *file, int line, const char *format, ...) GR_PRINTF(3, 4);

typedef struct fuzz_bytes {
    const uint8_t *at, *end;
} fuzz_bytes;

uint8_t fuzz_byte(fuzz_bytes *in);

/* In [0, n): of one byte up to 256, else of more. */
int64_t fuzz_below(fuzz_bytes *in, int64_t n);

/* What is left, or up to n bytes of it. */
fuzz_bytes fuzz_rest(fuzz_bytes *in, size_t n);
size_t fuzz_left(const fuzz_bytes *in);

/* Equal bits, or both NaN. */
bool fuzz_same_numbers(size_t n, const gr_real *a, const gr_real *b);

/* The operation has failed as one should: a message, on one line; forgets it. */
void fuzz_expect_error(gr_context *ctx);

/* A context as good as new, by number. A new one would ask the system for memory, which the sanitizers make slow. */
enum { FUZZ_CONTEXTS = 3 };
gr_context *fuzz_context(int number);

/* A directory of this process, made at the first call and removed, with the files that fuzz_path names, at its end. */
const char *fuzz_directory(void);

/* The path of a file in it, by number; number 0 is config.txt. */
enum { FUZZ_FILES = 8 };
const char *fuzz_path(int number);

/* Its content. */
void fuzz_write(const char *path, const uint8_t *data, size_t size);

#endif
