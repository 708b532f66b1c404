/* Elementwise ops and reductions against the formula, in double and with libm. */
#include "reference.h"

static array in[3], out;

/* -- One operand --------------------------------------------------------------------------------------------------- */

static double ref_neg(double x) { return -x; }
static double ref_scale(double x) { return -1.75 * x; }
static double ref_add_scalar(double x) { return x + 0.375; }
static double ref_square(double x) { return x * x; }
static double ref_cube(double x) { return x * x * x; }
static double ref_inverse_square(double x) { return 1 / (x * x); }
static double ref_root(double x) { return pow(x, 0.5); }
static double ref_power(double x) { return pow(x, -2.25); }
static double ref_one(double x) { return (void)x, 1; }
static double ref_relu(double x) { return x > 0 ? x : 0; }
static double ref_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double ref_gelu(double x) { return x / (1 + exp(-2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))); }
static double ref_gelu_erf(double x) { return x * erfc(-x / sqrt(2)) / 2; }
static double ref_silu(double x) { return x / (1 + exp(-x)); }

static gr_tensor *scale(gr_tensor *x) { return gr_scale(x, -1.75); }
static gr_tensor *add_scalar(gr_tensor *x) { return gr_add_scalar(x, 0.375); }
static gr_tensor *cube(gr_tensor *x) { return gr_pow(x, 3); }
static gr_tensor *inverse_square(gr_tensor *x) { return gr_pow(x, -2); }
static gr_tensor *root(gr_tensor *x) { return gr_pow(x, 0.5); }
static gr_tensor *power(gr_tensor *x) { return gr_pow(x, -2.25); }
static gr_tensor *zeroth_power(gr_tensor *x) { return gr_pow(x, 0); }

static const struct {
    const char *name;
    gr_tensor *(*op)(gr_tensor *);
    double (*formula)(double), low, high;
} unary[] = {{"neg", gr_neg, ref_neg, -3, 3},
             {"scale", scale, ref_scale, -3, 3},
             {"add_scalar", add_scalar, ref_add_scalar, -3, 3},
             {"square", gr_square, ref_square, -3, 3},
             {"cube", cube, ref_cube, -3, 3},
             {"inverse square", inverse_square, ref_inverse_square, -3, 3},
             {"root", root, ref_root, 0, 5},
             {"power", power, ref_power, 0.1, 5},
             {"zeroth power", zeroth_power, ref_one, -3, 3},
             {"sqrt", gr_sqrt, sqrt, 0, 9},
             {"exp", gr_exp, exp, -20, 20},
             {"log", gr_log, log, 1e-3, 4},
             {"abs", gr_abs, fabs, -3, 3},
             {"relu", gr_relu, ref_relu, -3, 3},
             {"sigmoid", gr_sigmoid, ref_sigmoid, -20, 20},
             {"tanh", gr_tanh, tanh, -5, 5},
             {"gelu", gr_gelu, ref_gelu, -4, 4},
             {"gelu_erf", gr_gelu_erf, ref_gelu_erf, -4, 4},
             {"silu", gr_silu, ref_silu, -20, 20}};
enum { UNARY = sizeof unary / sizeof unary[0] };

static void compare_unary(int op, gr_tensor *x) {
    read_array(x, &in[0]), read_array(unary[op].op(x), &out);
    ck_assert_int_eq(size_of(out.shape), size_of(in[0].shape));
    for (int64_t i = 0; i < size_of(out.shape); i++)
        demand_near(unary[op].name, i, out.v[i], unary[op].formula(in[0].v[i]), 0);
}

TEST(an_op_of_one_operand_gives_its_formula) {
    const double low = unary[_i].low, high = unary[_i].high;
    compare_unary(_i, drawn(GR_SHAPE(4001), low, high));
    compare_unary(_i, drawn(GR_SCALAR, low, high));
    compare_unary(_i, strided(drawn(GR_SHAPE(3, 5, 17), low, high)));
    compare_unary(_i, gr_expand(drawn(GR_SHAPE(7, 1), low, high), GR_SHAPE(2, 7, 19)));
}

/* -- Two and three operands ---------------------------------------------------------------------------------------- */

static double ref_add(double a, double b) { return a + b; }
static double ref_sub(double a, double b) { return a - b; }
static double ref_mul(double a, double b) { return a * b; }
static double ref_div(double a, double b) { return a / b; }
static double ref_mask(double score, double mask) { return mask != 0 ? score : -INFINITY; }

static const struct {
    const char *name;
    gr_tensor *(*op)(gr_tensor *, gr_tensor *);
    double (*formula)(double, double);
} binary[] = {{"add", gr_add, ref_add},
              {"sub", gr_sub, ref_sub},
              {"mul", gr_mul, ref_mul},
              {"div", gr_div, ref_div},
              {"minimum", gr_minimum, fmin},
              {"maximum", gr_maximum, fmax},
              {"mask_scores", gr_mask_scores, ref_mask}};
enum { BINARY = sizeof binary / sizeof binary[0] };

static const gr_shape shapes[][3] = {{{0}, {0}, {0}},
                                     {{1, {1000}}, {1, {1000}}, {1, {1000}}},
                                     {{2, {3, 50}}, {1, {50}}, {0}},
                                     {{2, {3, 50}}, {2, {3, 1}}, {1, {50}}},
                                     {{1, {9}}, {2, {11, 1}}, {2, {1, 9}}},
                                     {{3, {4, 1, 5}}, {3, {1, 6, 5}}, {3, {4, 6, 1}}},
                                     {{4, {2, 3, 1, 4}}, {2, {7, 1}}, {3, {3, 7, 4}}},
                                     {{6, {2, 1, 3, 1, 2, 1}}, {6, {1, 2, 1, 3, 1, 2}}, {0}}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* Also with zeros, as a mask has. */
static gr_tensor *operand(gr_shape shape, int under_strides) {
    gr_tensor *x = drawn(shape, -3, 3);
    for (int64_t i = 2; i < gr_numel(x); i += 5) gr_data(x)[i] = 0;
    return under_strides && shape.ndim < GR_MAX_DIMS ? strided(x) : x;
}

static void compare_binary(int op, gr_tensor *a, gr_tensor *b) {
    int64_t index[GR_MAX_DIMS];
    read_array(a, &in[0]), read_array(b, &in[1]), read_array(binary[op].op(a, b), &out);
    for (int64_t i = 0; i < size_of(out.shape); i++) {
        index_of(out.shape, i, index);
        double x = seen(&in[0], out.shape.ndim, index), y = seen(&in[1], out.shape.ndim, index);
        demand_near(binary[op].name, i, out.v[i], binary[op].formula(x, y), 0);
    }
}

TEST(an_op_of_two_operands_gives_its_formula) {
    for (int s = 0; s < SHAPES; s++)
        for (int strides = 0; strides < 4; strides++) {
            compare_binary(_i, operand(shapes[s][0], strides & 1), operand(shapes[s][1], strides & 2));
            compare_binary(_i, operand(shapes[s][1], strides & 1), operand(shapes[s][0], strides & 2));
        }
}

static void compare_where(gr_tensor *condition, gr_tensor *a, gr_tensor *b) {
    int64_t index[GR_MAX_DIMS];
    read_array(condition, &in[0]), read_array(a, &in[1]), read_array(b, &in[2]);
    read_array(gr_where(condition, a, b), &out);
    for (int64_t i = 0; i < size_of(out.shape); i++) {
        index_of(out.shape, i, index);
        const array *from = seen(&in[0], out.shape.ndim, index) != 0 ? &in[1] : &in[2];
        DEMAND(out.v[i] == seen(from, out.shape.ndim, index));
    }
}

TEST(where_takes_from_one_or_the_other) {
    for (int s = 0; s < SHAPES; s++)
        for (int strides = 0; strides < 8; strides++)
            for (int turn = 0; turn < 3; turn++)
                compare_where(operand(shapes[s][turn], strides & 1), operand(shapes[s][(turn + 1) % 3], strides & 2),
                              operand(shapes[s][(turn + 2) % 3], strides & 4));
}

TEST(a_power_beyond_what_is_squared_is_that_of_libm) {
    const double x[] = {1.001, 0.5, 0, 1, 3}, t[] = {1025, -1025, 2000.5};
    for (int k = 0; k < 3; k++) {
        gr_tensor *y = gr_pow(tensor(GR_SHAPE(5), x), t[k]);
        for (int i = 0; i < 5; i++) {
            const double found = (double)gr_data(y)[i], wanted = (double)(gr_real)pow((double)(gr_real)x[i], t[k]);
            /* e^(t log x): the error of the logarithm times t */
            DEMAND(found == wanted || fabs(found - wanted) <= 4 * fabs(t[k]) * TOLERANCE * wanted);
        }
    }
    ck_assert(isnan(gr_item(gr_pow(gr_scalar(ctx, 2), (double)NAN))));
}

/* -- Reductions ---------------------------------------------------------------------------------------------------- */

static double ref_sum(int n, const double *x, double *size) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i], *size += fabs(x[i]);
    return sum;
}
static double ref_mean(int n, const double *x, double *size) {
    double mean = ref_sum(n, x, size) / n;
    *size /= n;
    return mean;
}
static double ref_max(int n, const double *x, double *size) {
    (void)size;
    double max = x[0];
    for (int i = 1; i < n; i++) max = fmax(max, x[i]);
    return max;
}
static double ref_variance(int n, const double *x, double *size) {
    double mean = ref_mean(n, x, size), sum = 0;
    for (int i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return sum / n;
}
static double ref_logsumexp(int n, const double *x, double *size) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp(x[i]);
    *size = 1;
    return log(sum);
}
static double ref_norm(int n, const double *x, double *size) {
    double sum = 0;
    (void)size;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

static const struct {
    const char *name;
    gr_tensor *(*op)(gr_tensor *, gr_axes);
    double (*formula)(int n, const double *x, double *size);
} reductions[] = {{"sum", gr_sum, ref_sum},
                  {"mean", gr_mean, ref_mean},
                  {"max", gr_max, ref_max},
                  {"variance", gr_variance, ref_variance},
                  {"logsumexp", gr_logsumexp, ref_logsumexp},
                  {"norm", gr_norm, ref_norm}};
enum { REDUCTIONS = sizeof reductions / sizeof reductions[0] };

static const gr_axes axes[] = {{-1, false, {0}},    {1, false, {0}},    {1, false, {1}},    {1, false, {-1}},
                               {2, false, {0, -1}}, {2, false, {1, 2}}, {2, false, {2, 0}}, {3, false, {0, 1, 2}},
                               {1, true, {1}},      {2, true, {-1, 0}}, {1, true, {-3}},    {0, false, {0}}};
enum { AXES = sizeof axes / sizeof axes[0] };

static bool is_reduced(gr_axes set, int axis, int ndim) {
    bool found = set.count < 0;
    for (int i = 0; i < set.count; i++) found = found || set.axis[i] == axis || set.axis[i] + ndim == axis;
    return found;
}

/* The elements of in[0] that agree with an index of the result, in which reduced axes have size 1. */
static int gather(gr_axes set, gr_shape kept, int64_t place, double *into) {
    int64_t wanted[GR_MAX_DIMS], index[GR_MAX_DIMS];
    int n = 0;
    index_of(kept, place, wanted);
    for (int64_t i = 0; i < size_of(in[0].shape); i++) {
        index_of(in[0].shape, i, index);
        bool agrees = true;
        for (int axis = 0; axis < kept.ndim; axis++)
            agrees = agrees && (is_reduced(set, axis, kept.ndim) || index[axis] == wanted[axis]);
        if (agrees) into[n++] = in[0].v[i];
    }
    return n;
}

static void compare_reduction(int op, gr_tensor *x, gr_axes set) {
    static double terms[MOST];
    read_array(x, &in[0]), read_array(reductions[op].op(x, set), &out);
    gr_shape kept = in[0].shape, dropped = {0, {0}};
    for (int i = 0; i < kept.ndim; i++) {
        if (is_reduced(set, i, kept.ndim)) kept.dim[i] = 1;
        if (!is_reduced(set, i, kept.ndim)) dropped.dim[dropped.ndim++] = kept.dim[i];
    }
    expect_shape(__LINE__, reductions[op].op(x, set), set.keep ? kept : dropped);
    for (int64_t i = 0; i < size_of(kept); i++) {
        double size = 0;
        int n = gather(set, kept, i, terms);
        double wanted = reductions[op].formula(n, terms, &size);
        demand_near(reductions[op].name, i, out.v[i], wanted, size);
    }
}

TEST(a_reduction_gives_its_formula_over_any_axes) {
    for (int a = 0; a < AXES; a++) {
        compare_reduction(_i, drawn(GR_SHAPE(4, 5, 6), -2, 2), axes[a]);
        compare_reduction(_i, strided(drawn(GR_SHAPE(3, 20, 4), -2, 2)), axes[a]);
        compare_reduction(_i, gr_permute(drawn(GR_SHAPE(4, 5, 6), -2, 2), GR_AXES(2, 0, 1)), axes[a]);
        compare_reduction(_i, gr_expand(drawn(GR_SHAPE(5, 1), -2, 2), GR_SHAPE(2, 5, 7)), axes[a]);
        compare_reduction(_i, drawn(GR_SHAPE(1, 1, 1), -2, 2), axes[a]);
    }
    compare_reduction(_i, drawn(GR_SHAPE(3, 2000), -2, 2), GR_AXES(1));
    compare_reduction(_i, drawn(GR_SCALAR, -2, 2), GR_ALL);
}

Suite *ops_suite(void) {
    Suite *suite = suite_create("ops");
    add_rows(suite, "one operand", an_op_of_one_operand_gives_its_formula, UNARY);
    add_rows(suite, "two operands", an_op_of_two_operands_gives_its_formula, BINARY);
    GROUP(suite, "three operands", where_takes_from_one_or_the_other);
    GROUP(suite, "powers", a_power_beyond_what_is_squared_is_that_of_libm);
    add_rows(suite, "reductions", a_reduction_gives_its_formula_over_any_axes, REDUCTIONS);
    return suite;
}
