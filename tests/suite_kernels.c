/* Every instruction set gives the bits of the reference loops, and these give the right numbers where it is hard. */
#include "kernels.h"

static const gr_kernels *reference(void) { return gr_kernels_select("reference"); }

/* -- Elementwise maps ---------------------------------------------------------------------------------------------- */

enum { MOST = 1100, MOST_STRIDE = 3, ROOM = MOST * MOST_STRIDE };
static gr_real operand[GR_ROW_OPERANDS][ROOM], by_fast[ROOM], by_reference[ROOM];

static const char *map_name(int map) {
    static const char *const name[] = {
#define MAP(name, formula)       #name,
#define MAP_PLAIN(name, formula) #name,
#include "../src/tensor/kernels/maps.def"
    };
    return name[map];
}

typedef struct map_case {
    size_t n;
    ptrdiff_t stride[GR_ROW_OPERANDS];
    int operands; /* without y */
    gr_real t;
} map_case;

static void run_map(const gr_kernels *k, int map, const map_case *c, gr_real *y) {
    memcpy(y, operand[0], sizeof operand[0]);
    gr_row row = {.n = c->n, .p = {y}, .t = c->t};
    for (int i = 0; i < GR_ROW_OPERANDS; i++) row.s[i] = c->stride[i];
    for (int i = 1; i <= c->operands; i++) row.p[i] = operand[i];
    k->map[map](&row);
}

/* Also what lies between the elements of y must be as before. */
static void compare_maps(const gr_kernels *k, kind of, const map_case *c) {
    for (int i = 0; i < GR_ROW_OPERANDS; i++) draw_numbers(ROOM, operand[i], of);
    for (int map = 0; map < GR_MAP_COUNT; map++) {
        run_map(reference(), map, c, by_reference);
        run_map(k, map, c, by_fast);
        expect_same(k, map_name(map), ROOM, by_fast, by_reference);
    }
}

TEST(every_map_gives_the_bits_of_the_reference) {
    const gr_kernels *k = table(_i);
    const size_t size[] = {0, 1, 3, 7, 8, 15, 16, 17, 31, 33, 100, MOST};
    const ptrdiff_t stride[][GR_ROW_OPERANDS] = {{1, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 3}, {2, 1, 1, 1}, {3, 3, 2, 0}};
    const gr_real t[] = {GR_R(0.75), 3, -2, 0};
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++)
        for (size_t d = 0; d < sizeof stride / sizeof stride[0]; d++)
            for (int of = TAME; of < (k->exact ? KINDS : WILD); of++) {
                map_case c = {.n = size[s], .operands = s % 2 ? 1 : 3, .t = t[(s + d) % 4]};
                memcpy(c.stride, stride[d], sizeof c.stride);
                compare_maps(k, (kind)of, &c);
            }
}

/* -- Rows ---------------------------------------------------------------------------------------------------------- */

static gr_real x[MOST], dy[MOST], weight[MOST], bias[MOST], mask[MOST], square[MOST];

enum { NUMBERS = 6, ROWS = 14 };
typedef struct outcome {
    gr_real number[NUMBERS], row[ROWS][MOST];
} outcome;
static outcome fast, plain;

static const gr_center about = {GR_R(0.3), GR_R(0.007)};

static void run_reductions(const gr_kernels *k, size_t n, gr_real *out) {
    size_t first = 0;
    out[0] = k->sum(n, x, 0);
    out[1] = k->sum(n, x, GR_R(0.3));
    out[2] = k->sum_squares(n, x, about, GR_R(1.7));
    out[3] = k->logsumexp(n, x);
    out[4] = n > 0 ? k->max(n, x, &first) : 0;
    out[5] = (gr_real)first;
}

static void run_rows(const gr_kernels *k, size_t n, outcome *o) {
    gr_real(*row)[MOST] = o->row;
    for (int i = 0; i < ROWS; i++) memcpy(row[i], bias, sizeof bias); /* gradients are added to it */
    k->softmax(n, row[0], x, NULL, 1);
    k->softmax(n, row[1], x, mask, GR_R(0.3));
    k->softmax_dx(n, row[2], row[1], dy, GR_R(0.3));
    k->log_softmax(n, row[3], x);
    k->log_softmax_dx(n, row[4], row[3], dy);
    if (n > 0) k->cross_entropy_dx(n, row[5], x, GR_R(2.1), GR_R(0.25), n / 2);
    k->normalize(n, row[6], x, about, GR_R(1.7), weight, bias);
    k->normalize(n, row[7], x, about, GR_R(1.7), NULL, NULL);
    k->normalize_dx(n, row[8], dy, x, about, GR_R(1.7), weight, true);
    k->normalize_dx(n, row[9], dy, x, (gr_center){0, 0}, GR_R(1.7), NULL, false);
    k->normalize_dw(n, row[10], dy, x, about, GR_R(1.7));
    memcpy(row[12], square, sizeof square);
    k->adam(
        n, row[11], dy, row[13], row[12],
        &(gr_adam_step){.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3, .rate = 0.1, .root = 1.5, .keep = 0.9, .pull = 0.2});
}

static void run_sgd(const gr_kernels *k, size_t n, outcome *o) {
    memcpy(o->row[0], weight, sizeof weight);
    memcpy(o->row[1], bias, sizeof bias);
    k->sgd(n, o->row[0], dy, o->row[1], 0.1, 0.9, 0.01);
}

static void draw_rows(kind of) {
    draw_numbers(MOST, x, of), draw_numbers(MOST, dy, of), draw_numbers(MOST, weight, of), draw_numbers(MOST, bias, of);
    for (int i = 0; i < MOST; i++) mask[i] = (gr_real)gr_rng_below(&rng, 2), square[i] = weight[i] * weight[i];
}

static void compare_rows(const gr_kernels *k, size_t n) {
    run_reductions(reference(), n, plain.number), run_reductions(k, n, fast.number);
    expect_same(k, "reductions", NUMBERS, fast.number, plain.number);
    run_rows(reference(), n, &plain), run_rows(k, n, &fast);
    expect_same(k, "rows", ROWS * MOST, fast.row[0], plain.row[0]);
    run_sgd(reference(), n, &plain), run_sgd(k, n, &fast);
    expect_same(k, "sgd", 2 * MOST, fast.row[0], plain.row[0]);
}

TEST(every_row_kernel_gives_the_bits_of_the_reference) {
    const gr_kernels *k = table(_i);
    const size_t size[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 100, 255, 256, 257, 512, 1000, MOST};
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++)
        for (int of = TAME; of < (k->exact ? KINDS : SPECIAL); of++) {
            draw_rows((kind)of);
            compare_rows(k, size[s]);
        }
}

/* -- Far from zero ------------------------------------------------------------------------------------------------- */

static double sigmoid(double v) { return v < 0 ? exp(v) / (1 + exp(v)) : 1 / (1 + exp(-v)); }
static double gelu_gate(double v) { return sigmoid(2 * sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v)); }
static double gelu(double v) { return gelu_gate(v) == 0 ? 0 : v * gelu_gate(v); }
static double gelu_slope(double v) {
    double s = gelu_gate(v), rest = gelu_gate(-v);
    double bend = s * rest; /* 0 long before the other factor is infinite */
    return s + (bend == 0 ? 0 : v * bend * 2 * sqrt(2 / acos(-1)) * (1 + 3 * 0.044715 * v * v));
}
static double phi(double v) { return erfc(-v / sqrt(2)) / 2; }
static double gelu_erf(double v) { return phi(v) == 0 ? 0 : v * phi(v); }
static double gelu_erf_slope(double v) {
    double density = exp(-v * v / 2) / sqrt(2 * acos(-1));
    return phi(v) + (density == 0 ? 0 : v * density);
}
static double silu(double v) { return sigmoid(v) == 0 ? 0 : v * sigmoid(v); }
static double silu_slope(double v) {
    double s = sigmoid(v), bend = s * sigmoid(-v);
    return s + (bend == 0 ? 0 : v * bend);
}
static double sigmoid_slope(double v) { return sigmoid(v) * sigmoid(-v); }
static double tanh_slope(double v) { return 1 / cosh(v) / cosh(v); }

static const struct far {
    const char *name;
    gr_map_name map, slope_map;
    bool slope_of_output; /* the map of the slope reads the output */
    double (*value)(double), (*slope)(double);
} far_cases[] = {{"sigmoid", GR_MAP_sigmoid, GR_MAP_sigmoid_dx, true, sigmoid, sigmoid_slope},
                 {"tanh", GR_MAP_tanh, GR_MAP_tanh_dx, true, tanh, tanh_slope},
                 {"gelu", GR_MAP_gelu, GR_MAP_gelu_dx, false, gelu, gelu_slope},
                 {"gelu_erf", GR_MAP_gelu_erf, GR_MAP_gelu_erf_dx, false, gelu_erf, gelu_erf_slope},
                 {"silu", GR_MAP_silu, GR_MAP_silu_dx, false, silu, silu_slope}};

static gr_real map_one(const gr_kernels *k, gr_map_name map, gr_real y, gr_real a, gr_real b) {
    k->map[map](&(gr_row){.n = 1, .p = {&y, &a, &b}, .s = {1, 1, 1, 1}});
    return y;
}

static void expect_far(const gr_kernels *k, const struct far *f, gr_real at) {
    double value = (double)map_one(k, f->map, 0, at, at);
    gr_real from = f->slope_of_output ? (gr_real)value : at;
    double slope = (double)map_one(k, f->slope_map, 0, 1, from);
    double wanted = f->value((double)at), wanted_slope = f->slope((double)at);
    /* below this, floats lose digits and then vanish; near 1, 1 - y knows only what y left over */
    const double floor_of_value = 1e-36, floor_of_slope = f->slope_of_output ? TOLERANCE : 1e-36;
    ck_assert_msg(fabs(value - wanted) <= 10 * TOLERANCE * fabs(wanted) + floor_of_value,
                  "%s, %s(%g) = %.17g, not %.17g", k->name, f->name, (double)at, value, wanted);
    ck_assert_msg(fabs(slope - wanted_slope) <= 10 * TOLERANCE * fabs(wanted_slope) + floor_of_slope,
                  "%s, slope of %s at %g is %.17g, not %.17g", k->name, f->name, (double)at, slope, wanted_slope);
}

TEST(activations_and_their_slopes_are_right_far_from_zero) {
    const double at[] = {0, 1e-30, 0.5, 3, 6, 10.1, 15, 21.9, 22.1, 39.9, 40.1, 50, 100, 1e4, 1e20, 1e38};
    const gr_kernels *k = table(_i);
    for (size_t f = 0; f < sizeof far_cases / sizeof far_cases[0]; f++)
        for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
            expect_far(k, &far_cases[f], (gr_real)at[i]);
            expect_far(k, &far_cases[f], (gr_real)-at[i]);
        }
}

/* -- Choosing a table ---------------------------------------------------------------------------------------------- */

TEST(the_choices_are_those_that_can_be_had) {
    char choices[96];
    gr_kernels_choices(choices, sizeof choices);
    for (int i = 0; i < tables(); i++) ck_assert(contains(choices, table(i)->name));
    ck_assert_ptr_eq(table(0), gr_kernels_select(NULL));
    ck_assert_ptr_eq(table(fast_tables()), reference());
    ck_assert_ptr_null(gr_kernels_select("mmx"));
    ck_assert_ptr_null(gr_kernels_select(""));
}

Suite *kernels_suite(void) {
    Suite *suite = suite_create("kernels");
    add_rows(suite, "maps", every_map_gives_the_bits_of_the_reference, fast_tables());
    add_rows(suite, "rows", every_row_kernel_gives_the_bits_of_the_reference, fast_tables());
    add_rows(suite, "far from zero", activations_and_their_slopes_are_right_far_from_zero, tables());
    GROUP(suite, "choice", the_choices_are_those_that_can_be_had);
    return suite;
}
