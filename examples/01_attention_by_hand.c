/* Lesson 1: attention over "The cat sat", one number at a time, and then as four calls. */
#include <gradus.h>

#include <math.h>

#include "plot.h"

enum { WORDS = 3, SIZE = 2 }; /* d_k = d_v = 2 */
static const char *const word[WORDS] = {"The", "cat", "sat"};

/* Columns of query and key: "is it a noun?", "is it a verb?". "sat" asks for a noun, and insists. */
static const gr_real query[WORDS][SIZE] = {{1, 0}, {0, 1}, {2, 0}};
static const gr_real key[WORDS][SIZE] = {{0, 0}, {2, 0}, {0, 2}};
static const gr_real value[WORDS][SIZE] = {{1, 1}, {4, 0}, {0, 4}};

/* One query, step by step. */
static void by_hand(int i) {
    double score[WORDS], weight[WORDS], sum = 0, output[SIZE] = {0};
    printf("the query of \"%s\" is (%.0f, %.0f)\n", word[i], (double)query[i][0], (double)query[i][1]);
    for (int j = 0; j < WORDS; j++) {
        double dot = 0;
        for (int c = 0; c < SIZE; c++) dot += (double)query[i][c] * (double)key[j][c];
        score[j] = dot / sqrt(SIZE);
        sum += exp(score[j]);
        printf("  key of %s (%.0f, %.0f): q.k = %.0f, score = q.k / sqrt(2) = %.3f, e^score = %6.3f\n", word[j],
               (double)key[j][0], (double)key[j][1], dot, score[j], exp(score[j]));
    }
    for (int j = 0; j < WORDS; j++) {
        weight[j] = exp(score[j]) / sum;
        for (int c = 0; c < SIZE; c++) output[c] += weight[j] * (double)value[j][c];
        printf("  weight of %s = %.3f / %.3f = %.3f, its value is (%.0f, %.0f)\n", word[j], exp(score[j]), sum,
               weight[j], (double)value[j][0], (double)value[j][1]);
    }
    printf("  output = (%.3f, %.3f)\n", output[0], output[1]);
}

static void draw(int argc, char **argv, gr_tensor *weights) {
    plot p;
    gr_real w[WORDS * WORDS];
    if (!gr_to_array(weights, w) || !plot_open(&p, argc, argv, "01_weights.svg", 460, 380)) return;
    for (int i = 0; i < WORDS; i++)
        for (int j = 0; j < WORDS; j++)
            fprintf(p.data, "%d\t%d\t%.3f\t%s\t%s\n", j, i, (double)w[i * WORDS + j], word[j], word[i]);
    fprintf(p.script, "set border 0\nunset grid\nunset key\nset tics scale 0\nset size ratio 1\n"
                      "set xrange [-0.5:2.5]\nset yrange [2.5:-0.5] # the first word on top\nset cbrange [0:1]\n"
                      "set x2range [-0.5:2.5]\nset x2label 'the word looked at (its key and value)'\n"
                      "unset xtics\nset x2tics ('The' 0, 'cat' 1, 'sat' 2)\n"
                      "set ylabel 'the word that looks (its query)'\nset ytics ('The' 0, 'cat' 1, 'sat' 2)\n"
                      "set cblabel 'weight'\nset cbtics 0.25\n"
                      "ink(w) = w > 0.5 ? 0xffffff : 0x202020\n"
                      "plot data using 1:2:3 with image pixels, \\\n"
                      "     data using 1:2:(sprintf('%%.2f', $3)):(ink($3)) with labels font ',17' tc rgb variable\n");
    if (!plot_close(&p)) exit(EXIT_FAILURE);
}

int main(int argc, char **argv) {
    by_hand(WORDS - 1);

    gr_context *ctx = gr_context_new();
    gr_tensor *q = gr_from(ctx, GR_SHAPE(WORDS, SIZE), &query[0][0]);                    /* (T, d_k) */
    gr_tensor *k = gr_from(ctx, GR_SHAPE(WORDS, SIZE), &key[0][0]);                      /* (T, d_k) */
    gr_tensor *v = gr_from(ctx, GR_SHAPE(WORDS, SIZE), &value[0][0]);                    /* (T, d_v) */
    gr_tensor *scores = gr_scale(gr_matmul(q, gr_transpose(k, -2, -1)), 1 / sqrt(SIZE)); /* (T, T) */
    gr_tensor *weights = gr_softmax(scores);                                             /* (T, T) */
    gr_tensor *output = gr_matmul(weights, v);                                           /* (T, d_v) */
    gr_print(gr_named(scores, "scores"));
    gr_print(gr_named(weights, "weights"));
    gr_print(gr_named(gr_sum(weights, GR_AXES(-1)), "sums of the rows"));
    gr_print(gr_named(output, "output"));

    gr_tensor *in_one = gr_scaled_dot_product_attention(q, k, v, NULL).output;
    double difference = gr_item(gr_max(gr_abs(gr_sub(output, in_one)), GR_ALL));
    printf("gr_scaled_dot_product_attention gives the same: %s\n", difference < 1e-6 ? "yes" : "no");

    draw(argc, argv, weights);
    int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return status;
}
