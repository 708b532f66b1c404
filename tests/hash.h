/* FNV-1a with 64 bits (Fowler, Noll and Vo; basis and prime as in draft-eastlake-fnv): a checksum for comparing. */
#ifndef TESTS_HASH_H
#define TESTS_HASH_H

#include "tensor/real.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const uint64_t hash_of_nothing = 0xcbf29ce484222325;

static inline uint64_t hash_bytes(uint64_t so_far, const void *bytes, size_t n) {
    const uint64_t prime = 0x100000001b3;
    for (size_t i = 0; i < n; i++) so_far = (so_far ^ ((const uint8_t *)bytes)[i]) * prime;
    return so_far;
}

/* Of each number's bits the lowest byte first, on every machine. */
static inline uint64_t hash_numbers(uint64_t so_far, const gr_real *x, size_t n) {
    for (; n > 0; n--, x++) {
#ifdef GR_DOUBLE
        uint64_t bits;
#else
        uint32_t bits;
#endif
        uint8_t bytes[sizeof bits];
        memcpy(&bits, x, sizeof bits);
        for (size_t i = 0; i < sizeof bits; i++) bytes[i] = (uint8_t)(bits >> 8 * i);
        so_far = hash_bytes(so_far, bytes, sizeof bytes);
    }
    return so_far;
}

#endif
