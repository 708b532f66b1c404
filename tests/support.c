#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

gr_context *ctx;
gr_rng rng;

enum {
    SECONDS = 60,
    MOST_ELEMENTS = 1 << 16
}; /* of a test, for slow machines under a sanitizer; of a tensor compared */

static void open_context(void) {
    ctx = gr_context_new();
    rng = gr_rng_stream(gr_rng_seed(20), GR_STREAM_USER);
}

static void close_context(void) {
    gr_error_message(ctx);
    gr_context_free(ctx);
}

static TCase *new_group(Suite *suite, const char *title) {
    TCase *group = tcase_create(title);
    tcase_set_timeout(group, SECONDS);
    tcase_add_checked_fixture(group, open_context, close_context);
    suite_add_tcase(suite, group);
    return group;
}

void add_group(Suite *suite, const char *title, const TTest **tests) {
    TCase *group = new_group(suite, title);
    for (; *tests; tests++) tcase_add_test(group, *tests);
}

void add_rows(Suite *suite, const char *title, const TTest *test, int count) {
    tcase_add_loop_test(new_group(suite, title), test, 0, count);
}

void add_signal(Suite *suite, const char *title, const TTest *test, int signal) {
    tcase_add_test_raise_signal(new_group(suite, title), test, signal);
}

gr_tensor *tensor(gr_shape shape, const double *numbers) {
    gr_tensor *x = gr_zeros(ctx, shape);
    for (int64_t i = 0; i < gr_numel(x); i++) gr_data(x)[i] = (gr_real)numbers[i];
    return x;
}

gr_tensor *variable(gr_shape shape, const double *numbers) { return gr_requires_grad(tensor(shape, numbers)); }
gr_tensor *drawn(gr_shape shape, double low, double high) { return gr_uniform(ctx, shape, low, high, &rng); }

gr_tensor *counting(gr_shape shape) {
    gr_tensor *x = gr_zeros(ctx, shape);
    for (int64_t i = 0; i < gr_numel(x); i++) gr_data(x)[i] = (gr_real)i;
    return x;
}

gr_tensor *strided(gr_tensor *x) {
    if (gr_ndim(x) == 0) return x;
    gr_shape doubled = gr_shape_of(x);
    doubled.dim[doubled.ndim - 1] *= 2;
    gr_tensor *pair[] = {x, gr_full(ctx, gr_shape_of(x), NAN)};
    gr_tensor *y = gr_slice(gr_reshape(gr_stack(pair, 2, gr_ndim(x)), doubled), -1, 0, GR_END, 2);
    if (gr_ndim(x) == 1) return y;
    return gr_transpose(gr_keep(gr_transpose(y, 0, -1)), 0, -1);
}

bool same_bits(size_t n, const gr_real *a, const gr_real *b, size_t *at) {
    for (size_t i = 0; i < n; i++) {
        bool both_nan = a[i] != a[i] && b[i] != b[i];
        if (both_nan || memcmp(&a[i], &b[i], sizeof *a) == 0) continue;
        *at = i;
        return false;
    }
    return true;
}

static const gr_real *elements(gr_tensor *x, gr_real *out) {
    ck_assert_msg(!gr_is_inert(x), "an inert tensor: %s", gr_error_message(gr_context_of(x)));
    ck_assert_msg(gr_numel(x) <= MOST_ELEMENTS, "too large to be compared");
    ck_assert_msg(gr_to_array(x, out), "no values: %s", gr_error_message(gr_context_of(x)));
    return out;
}

bool same_tensors(gr_tensor *a, gr_tensor *b) {
    static gr_real of_a[MOST_ELEMENTS], of_b[MOST_ELEMENTS];
    gr_shape sa = gr_shape_of(a), sb = gr_shape_of(b);
    size_t at, dims = (size_t)sa.ndim * sizeof *sa.dim;
    if (sa.ndim != sb.ndim || memcmp(sa.dim, sb.dim, dims) != 0) return false;
    return same_bits((size_t)gr_numel(a), elements(a, of_a), elements(b, of_b), &at);
}

void read_values(gr_tensor *x, double *out) {
    static gr_real of_x[MOST_ELEMENTS];
    elements(x, of_x);
    for (int64_t i = 0; i < gr_numel(x); i++) out[i] = (double)of_x[i];
}

void expect_elements(int line, gr_tensor *x, double tolerance, size_t count, const double *numbers) {
    static gr_real of_x[MOST_ELEMENTS];
    elements(x, of_x);
    ck_assert_msg((size_t)gr_numel(x) == count, "line %d: %lld elements, not %zu", line, (long long)gr_numel(x), count);
    for (size_t i = 0; i < count; i++) {
        double found = (double)of_x[i], wanted = (double)(gr_real)numbers[i];
        double allowed = tolerance * (fabs(wanted) > 1 ? fabs(wanted) : 1);
        bool same = found == wanted || (found != found && wanted != wanted);
        if (!same && !(tolerance > 0 && fabs(found - wanted) <= allowed))
            ck_abort_msg("line %d: element %zu is %.17g, not %.17g", line, i, found, wanted);
    }
}

void expect_shape(int line, gr_tensor *x, gr_shape shape) {
    ck_assert_msg(!gr_is_inert(x), "line %d: an inert tensor: %s", line, gr_error_message(gr_context_of(x)));
    ck_assert_msg(gr_ndim(x) == shape.ndim, "line %d: %d axes, not %d", line, gr_ndim(x), shape.ndim);
    for (int i = 0; i < shape.ndim; i++)
        ck_assert_msg(gr_dim(x, i) == shape.dim[i], "line %d: axis %d has size %lld, not %lld", line, i,
                      (long long)gr_dim(x, i), (long long)shape.dim[i]);
}

bool contains(const char *text, const char *part) { return strstr(text, part) != NULL; }

void expect_error(int line, const char *text) {
    const char *message = gr_error_message(ctx);
    ck_assert_msg(!gr_ok(ctx), "line %d: no error", line);
    ck_assert_msg(contains(message, text), "line %d: \"%s\" does not say \"%s\"", line, message, text);
    gr_error_clear(ctx);
}

const char *captured_stderr(void (*run)(void)) {
    static char text[2048];
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    int before = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    run();
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}
