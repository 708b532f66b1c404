/* gradcheck [--op NAME] [--rows]: proves every gradient in double, and in float by way of gradcheck32, the same program
 * built with the other type, which it finds beside itself.
 *
 * --rows prints what this precision shows, separated by tabs: op, cases, operands, worst error, mutants caught, mutants
 * made; gradcheck32 prints nothing else. What does not hold is named on standard error, and the exit status is 1. */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef GR_DOUBLE
static const char precision[] = "double";
static const bool is_double = true;
#else
static const char precision[] = "float";
static const bool is_double = false;
#endif

typedef struct row {
    int cases, operands;
    double worst;
    int caught, made;
} row;

typedef struct report {
    const char *only;  /* the one op that was asked for, or NULL */
    row *here, *there; /* of each op, by its index: what this program shows, and what gradcheck32 does */
} report;

static bool is_chosen(const report *r, int op) { return !r->only || strcmp(gr_ops[op]->name, r->only) == 0; }

static bool survey_op(const gr_op *op, row *out) {
    survey s = {0};
    survey_gradients(op, &s);
    survey_mutants(op, &s);
    *out = (row){s.cases, s.operands, s.worst, s.caught, s.made};
    for (char *line = s.complaint, *end; (end = strchr(line, '\n')); line = end + 1)
        fprintf(stderr, "%s: %.*s\n", precision, (int)(end - line), line);
    return !s.complaint[0];
}

static bool survey_all(const report *r) {
    bool all_hold = true;
    for (int i = 0; i < gr_op_count; i++)
        if (is_chosen(r, i)) all_hold = survey_op(gr_ops[i], &r->here[i]) && all_hold;
    return all_hold;
}

static void print_rows(const report *r) {
    for (int i = 0; i < gr_op_count; i++)
        if (is_chosen(r, i))
            printf("%s\t%d\t%d\t%.17g\t%d\t%d\n", gr_ops[i]->name, r->here[i].cases, r->here[i].operands,
                   r->here[i].worst, r->here[i].caught, r->here[i].made);
}

/* Starts "path/to/gradcheck32 --rows"; NULL after a message. */
static FILE *start_sibling(const char *self, const char *only) {
    char path[2048], command[4096];
    const char *slash = strrchr(self, '/');
    snprintf(path, sizeof path, "%.*s/gradcheck32", slash ? (int)(slash - self) : 1, slash ? self : ".");
    snprintf(command, sizeof command, "'%s' --rows%s%s", path, only ? " --op " : "", only ? only : "");
    FILE *rows = access(path, X_OK) == 0 && !strchr(path, '\'') ? popen(command, "r") : NULL;
    if (!rows) fprintf(stderr, "gradcheck: the float half, %s, cannot be run\n", path);
    return rows;
}

/* False if the sibling found something that does not hold, or if a row is missing. */
static bool read_sibling(const report *r, FILE *rows) {
    char name[64];
    row x;
    int missing = 0;
    while (fscanf(rows, "%63s%d%d%lf%d%d", name, &x.cases, &x.operands, &x.worst, &x.caught, &x.made) == 6)
        for (int i = 0; i < gr_op_count; i++)
            if (strcmp(gr_ops[i]->name, name) == 0) r->there[i] = x;
    for (int i = 0; i < gr_op_count; i++) missing += is_chosen(r, i) && r->there[i].cases != r->here[i].cases;
    if (missing) fprintf(stderr, "gradcheck: gradcheck32 has other cases for %d ops: make both anew\n", missing);
    return pclose(rows) == 0 && !missing;
}

static const char *plural(int n) { return n == 1 ? "" : "s"; }

static void print_table(const report *r, bool all_hold) {
    row sum = {0};
    int ops = 0;
    printf("%-18s%7s%10s%13s%13s%12s\n", "", "", "", "worst error", "worst error", "mutants");
    printf("%-18s%7s%10s%13s%13s%12s\n", "op", "cases", "operands", "in double", "in float", "caught");
    for (int i = 0; i < gr_op_count; i++) {
        if (!is_chosen(r, i)) continue;
        const row *d = &r->here[i], *f = &r->there[i];
        char caught[32];
        snprintf(caught, sizeof caught, "%d/%d", d->caught + f->caught, d->made + f->made);
        printf("%-18s%7d%10d%13.1e%13.1e%12s\n", gr_ops[i]->name, d->cases, d->operands, d->worst, f->worst, caught);
        ops++, sum.cases += d->cases, sum.operands += d->operands;
        sum.caught += d->caught + f->caught, sum.made += d->made + f->made;
    }
    printf("\n%d op%s, %d cases, %d operand%s: %s, %d of %d mutants caught\n", ops, plural(ops), sum.cases,
           sum.operands, plural(sum.operands), all_hold ? "all gradients hold" : "NOT everything holds", sum.caught,
           sum.made);
}

/* The sibling works while this program does. */
static bool run_both(const report *r, const char *self) {
    FILE *sibling = start_sibling(self, r->only);
    if (!sibling) return false;
    bool holds = survey_all(r), there_holds = read_sibling(r, sibling);
    print_table(r, holds && there_holds);
    return holds && there_holds;
}

static bool run_rows(const report *r) {
    bool holds = survey_all(r);
    print_rows(r);
    return holds;
}

static bool is_op(const char *name) {
    for (int i = 0; i < gr_op_count; i++)
        if (strcmp(gr_ops[i]->name, name) == 0) return true;
    return false;
}

int main(int argc, char **argv) {
    report r = {.here = calloc((size_t)gr_op_count, sizeof(row)), .there = calloc((size_t)gr_op_count, sizeof(row))};
    bool rows = !is_double, understood = r.here && r.there;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--rows") == 0)
            rows = true;
        else if (strcmp(argv[i], "--op") == 0 && i + 1 < argc && is_op(argv[i + 1]))
            r.only = argv[++i];
        else
            understood = false;
    }
    if (!understood)
        fprintf(stderr, "usage: gradcheck [--op NAME] [--rows]; NAME is an op of src/autograd/registry.h\n");
    bool holds = understood && (rows ? run_rows(&r) : run_both(&r, argv[0]));
    free(r.here);
    free(r.there);
    return holds ? EXIT_SUCCESS : EXIT_FAILURE;
}
