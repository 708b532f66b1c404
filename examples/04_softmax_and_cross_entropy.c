/* Lesson 4: softmax, its Jacobian, the input that breaks the naive formula, and the loss of a model that knows nothing.
 */
#include <gradus.h>

#include <math.h>

#include "plot.h"

enum { V = 3, ROWS = 2000, LETTERS = 65, SPREADS = 13 };

/* -- The Jacobian ----------------------------------------------------------------------------------------------------
 */

/* Row i of dp/dx is what backward makes of the cotangent that is 1 at i and 0 elsewhere. */
static void jacobian(gr_context *ctx) {
    static const gr_real logits[V] = {2, 1, 0};
    gr_real p[V], one[V] = {0};
    gr_to_array(gr_softmax(gr_from(ctx, GR_SHAPE(V), logits)), p);
    printf("p = softmax(2, 1, 0) = (%.4f, %.4f, %.4f)\n", (double)p[0], (double)p[1], (double)p[2]);
    printf("dp_i/dx_j by backward         p_i ([i = j] - p_j)\n");
    for (int i = 0; i < V; i++) {
        gr_tensor *x = gr_requires_grad(gr_from(ctx, GR_SHAPE(V), logits));
        one[i] = 1;
        gr_backward_from(gr_softmax(x), gr_from(ctx, GR_SHAPE(V), one));
        one[i] = 0;
        for (int j = 0; j < V; j++) printf("%8.4f", (double)gr_data(gr_grad(x))[j]);
        printf("      ");
        for (int j = 0; j < V; j++) printf("%8.4f", (double)(p[i] * ((gr_real)(i == j) - p[j])));
        printf("\n");
    }
}

/* -- Naive and stable ------------------------------------------------------------------------------------------------
 */

static gr_tensor *naive_softmax(gr_tensor *x) {
    gr_tensor *e = gr_exp(x);                 /* e^x */
    return gr_div(e, gr_sum(e, GR_KEEP(-1))); /* e^x / sum e^x */
}

static gr_tensor *stable_softmax(gr_tensor *x) {
    gr_tensor *m = gr_detach(gr_max(x, GR_KEEP(-1)));
    gr_tensor *e = gr_exp(gr_sub(x, m));      /* e^(x - m) <= 1 */
    return gr_div(e, gr_sum(e, GR_KEEP(-1))); /* the same quotient */
}

static double naive_loss(gr_tensor *x) { return -gr_item(gr_log(gr_slice(naive_softmax(x), 0, 0, 1, 1))); }

static double stable_loss(gr_tensor *x) { /* logsumexp(x) - x_0, which gr_cross_entropy computes */
    static const int32_t first = 0;
    return gr_item(gr_cross_entropy(gr_reshape(x, GR_SHAPE(1, V)), (gr_tokens){&first, 1, 1}));
}

static void put(const char *what, double x) {
    if (x != x)
        printf("  %s nan", what); /* without the sign that printf may show */
    else
        printf("  %s %.4g", what, x);
}

static void side_by_side(gr_context *ctx) {
    static const gr_real input[][V] = {{2, 1, 0}, {90, 89, 88}, {-110, -111, -112}, {0, 200, 0}};
    for (size_t k = 0; k < sizeof input / sizeof input[0]; k++) {
        gr_tensor *x = gr_from(ctx, GR_SHAPE(V), input[k]);
        printf("x = (%g, %g, %g):\n", (double)input[k][0], (double)input[k][1], (double)input[k][2]);
        put("softmax(x)_0: naive", (double)gr_data(naive_softmax(x))[0]);
        put("stable", (double)gr_data(stable_softmax(x))[0]);
        put("library", (double)gr_data(gr_softmax(x))[0]);
        printf("\n");
        put("loss of target 0: -log(naive softmax)", naive_loss(x));
        put("logsumexp(x) - x_0", stable_loss(x));
        printf("\n");
    }
}

/* -- Knowing nothing -------------------------------------------------------------------------------------------------
 */

/* The mean loss of logits ~ N(0, spread) against targets drawn at random. */
static double blind_loss(gr_context *ctx, double spread) {
    static int32_t target[ROWS];
    gr_rng rng = gr_rng_seed(1);
    for (int i = 0; i < ROWS; i++) target[i] = (int32_t)gr_rng_below(&rng, LETTERS);
    gr_tensor *logits = gr_normal(ctx, GR_SHAPE(ROWS, LETTERS), 0, spread, &rng); /* (N, V) */
    double loss = gr_item(gr_cross_entropy(logits, (gr_tokens){target, ROWS, 1}));
    gr_context_reset(ctx);
    return loss;
}

static void first_loss(gr_context *ctx, int argc, char **argv) {
    static const int32_t ids[] = {18, 47, 56, 57, 58, 1, 15, 47}, next[] = {47, 56, 57, 58, 1, 15, 47, 58};
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = LETTERS, .context = 8, .heads = 2, .width = 32, .seed = 1});
    gr_tensor *loss = gr_cross_entropy(gr_gpt_forward(gpt, (gr_tokens){ids, 1, 8}), (gr_tokens){next, 1, 8});
    printf("ln 65 = %.3f, a new model's loss = %.3f\n", log(LETTERS), gr_item(loss));
    plot p;
    const bool drawing = plot_open(&p, argc, argv, "04_first_loss.svg", 700, 400);
    for (int i = 0; i < SPREADS; i++) {
        const double spread = 0.25 * i, measured = blind_loss(ctx, spread);
        if (i % 4 == 0) printf("logits of mean 0, standard deviation %.0f: loss %.2f\n", spread, measured);
        if (drawing) fprintf(p.data, "%.2f\t%.3f\n", spread, measured);
    }
    if (!drawing) return;
    fprintf(p.script, "set xrange [0:3]\nset yrange [0:9]\nset xlabel 'standard deviation of the logits'\n"
                      "set ylabel 'loss (nats)'\nset key top left\n"
                      "plot log(65) with lines dt (6,4) lw 1.5 lc rgb '#808080' title 'ln 65', \\\n"
                      "     log(65) + x**2 / 2 with lines ls 2 title 'ln 65 + variance / 2', \\\n"
                      "     data using 1:2 with points ls 1 title 'measured, 2000 rows'\n");
    if (!plot_close(&p)) exit(EXIT_FAILURE);
}

int main(int argc, char **argv) {
    gr_context *ctx = gr_context_new();
    jacobian(ctx);
    side_by_side(ctx);
    first_loss(ctx, argc, argv);
    int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return status;
}
