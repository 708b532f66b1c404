#include "kernels.h"

#include <stdio.h>
#include <string.h>

extern const gr_kernels gr_kernels_reference, gr_kernels_baseline, gr_kernels_avx2, gr_kernels_avx512, gr_kernels_neon;

/* Best first. */
static const struct {
    const char *name;
    const gr_kernels *table;
} tables[] = {
#if defined __x86_64__
    {"avx512", &gr_kernels_avx512},
    {"avx2", &gr_kernels_avx2},
    {"baseline", &gr_kernels_baseline},
#elif defined __aarch64__
    {"neon", &gr_kernels_neon},
#else
    {"baseline", &gr_kernels_baseline},
#endif
    {"reference", &gr_kernels_reference},
};
enum { TABLES = sizeof tables / sizeof tables[0] };

static bool runs_here(const char *name) {
#if defined __x86_64__
    if (strcmp(name, "avx512") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
    if (strcmp(name, "avx2") == 0) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    (void)name;
    return true;
}

const gr_kernels *gr_kernels_select(const char *wanted) {
    for (int i = 0; i < TABLES; i++)
        if ((!wanted || strcmp(wanted, tables[i].name) == 0) && runs_here(tables[i].name)) return tables[i].table;
    return NULL;
}

const char *gr_kernels_choices(char *out, size_t size) {
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < TABLES; i++)
        if (runs_here(tables[i].name) && at < size)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", tables[i].name);
    return out;
}
