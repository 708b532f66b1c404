#include "figure.h"

#include <stdlib.h>

enum { READABLE = 16 }; /* most tokens for which a weight fits into its cell as a number */

/* The weights of one head: n queries, n keys. */
typedef struct head {
    int64_t layer, head, n;
    double score;
    gr_real *weight; /* (n, n) */
} head;

/* How much a head looks for what a token is, not for where it is. place[d], the mean weight of the keys d places before
 * their query, is what a head gives by position alone; the score is the largest excess over it in a row, mean over the
 * rows. The first key does not count, where a head looks when it looks for nothing, nor does the query itself. */
static double looks_for_content(const gr_real *weight, int64_t n) {
    double score = 0;
    double *place = calloc((size_t)n, sizeof *place);
    for (int64_t d = 1; place && d < n - 1; d++) {
        for (int64_t key = 1; key + d < n; key++) place[d] += (double)weight[(key + d) * n + key];
        place[d] /= (double)(n - 1 - d);
    }
    for (int64_t query = 2; place && query < n; query++) {
        double most = 0;
        for (int64_t key = 1; key < query; key++) {
            const double excess = (double)weight[query * n + key] - place[query - key];
            if (excess > most) most = excess;
        }
        score += most / (double)(n - 2);
    }
    free(place);
    return score;
}

/* Of all heads of all layers the one that looks most for content; weight NULL after an error. */
static head choose(gr_gpt *gpt, int64_t n) {
    const int64_t heads = gpt->config.heads;
    const size_t room = (size_t)heads * (size_t)n * (size_t)n;
    head best = {.n = n, .score = -1};
    gr_real *all = malloc(room * sizeof *all); /* (1, H, n, n) of one layer */
    best.weight = malloc((size_t)n * (size_t)n * sizeof *best.weight);
    if (!all || !best.weight) gr_fail(gpt->ctx, "attention", "no memory for %zu weights", room);
    for (int64_t layer = 0; layer < gpt->config.layers && gr_ok(gpt->ctx); layer++) {
        if (!gr_to_array(gpt->weights[layer], all)) break;
        for (int64_t h = 0; h < heads; h++) {
            const gr_real *weight = all + h * n * n;
            const double score = looks_for_content(weight, n);
            if (score <= best.score) continue;
            best = (head){layer, h, n, score, best.weight};
            for (int64_t i = 0; i < n * n; i++) best.weight[i] = weight[i];
        }
    }
    free(all);
    return best;
}

/* A byte as a picture can show it, as a string of gnuplot's. */
static void label(char out[8], uint8_t byte) {
    if (byte == '\n')
        snprintf(out, 8, u8"'\u21b5'"); /* an arrow down and to the left */
    else if (byte == ' ')
        snprintf(out, 8, u8"'\u2423'"); /* an open box */
    else if (byte == '\'')
        snprintf(out, 8, "\"'\"");
    else if (byte > ' ' && byte < 0x7f)
        snprintf(out, 8, "'%c'", byte);
    else
        snprintf(out, 8, "'x%02X'", byte);
}

static void write_data(FILE *data, const head *h) {
    fputs("query\tkey\tweight\n", data);
    for (int64_t query = 0; query < h->n; query++)
        for (int64_t key = 0; key < h->n; key++)
            fprintf(data, "%lld\t%lld\t%.6g\n", (long long)query, (long long)key,
                    (double)h->weight[query * h->n + key]);
}

static void write_tics(FILE *script, char axis, const gr_tokenizer *tokenizer, const int32_t *ids, int64_t n) {
    char text[8];
    fprintf(script, "set %ctics scale 0 (", axis);
    for (int64_t i = 0; i < n; i++) {
        label(text, tokenizer->byte[ids[i]]);
        fprintf(script, "%s%s %lld", i > 0 ? ", " : "", text, (long long)i);
    }
    fputs(")\n", script);
}

static void write_script(FILE *script, const head *h, const gr_tokenizer *tokenizer, const int32_t *ids) {
    static const char body[] =
        "set palette defined (0 '#ffffff', 0.1 '#deebf7', 0.3 '#9ecae1', 0.5 '#4292c6', 0.75 '#08519c', 1 '#08306b')\n"
        "set cbrange [0:1]\n"
        "set cbtics 0.2 scale 0\n"
        "set cblabel 'weight; each row sums to 1'\n"
        "set xlabel 'Keys'\n"
        "set ylabel 'Queries'\n"
        "set xrange [-0.5 : n - 0.5]\n"
        "set yrange [n - 0.5 : -0.5] # the first query on top\n"
        "set size ratio 1\n"
        "set border lc rgb '#808080'\n"
        "set tics textcolor rgb '#303030'\n"
        "unset key\n"
        "ink(w) = w > 0.45 ? 0xffffff : 0x404040\n"
        "if (!values) { set xtics font 'sans,8'; set ytics font 'sans,8' }\n"
        "if (values) {\n"
        "    do for [i = 1 : n - 1] {\n"
        "        set arrow from i - 0.5, -0.5 to i - 0.5, n - 0.5 nohead front lc rgb '#e4e4e4'\n"
        "        set arrow from -0.5, i - 0.5 to n - 0.5, i - 0.5 nohead front lc rgb '#e4e4e4'\n"
        "    }\n"
        "    plot 'attention.tsv' skip 1 using 2:1:3 with image pixels, \\\n"
        "         '' skip 1 using 2:1:($2 <= $1 ? sprintf('%.2f', $3) : ''):(ink($3)) \\\n"
        "             with labels font 'sans,9' textcolor rgb variable\n"
        "} else {\n"
        "    plot 'attention.tsv' skip 1 using 2:1:3 with image pixels\n"
        "}\n"
        "set output\n";
    const bool values = h->n <= READABLE;
    lm_write_terminal(script, "attention", values ? 820 : 1100, values ? 720 : 980);
    fprintf(script, "n = %lld\nvalues = %d\nset title 'Attention, layer %lld, head %lld' font 'sans,14'\n",
            (long long)h->n, values, (long long)h->layer + 1, (long long)h->head + 1);
    write_tics(script, 'x', tokenizer, ids, h->n);
    write_tics(script, 'y', tokenizer, ids, h->n);
    fputs(body, script);
}

void lm_write_attention(const lm_settings *set, gr_gpt *gpt, const gr_tokenizer *tokenizer, const int32_t *ids,
                        int64_t n) {
    gr_context *ctx = gpt->ctx;
    gr_gpt_training(gpt, false);
    gr_no_grad_begin(ctx);
    gpt->keep_weights = true;
    gr_gpt_forward(gpt, (gr_tokens){ids, 1, n});
    gpt->keep_weights = false;
    gr_no_grad_end(ctx);
    if (!gr_ok(ctx)) return;
    const head best = choose(gpt, n);
    FILE *data = lm_create(ctx, set->out, "attention.tsv");
    if (data) write_data(data, &best);
    lm_close(ctx, data, "attention.tsv");
    FILE *script = lm_create(ctx, set->out, "attention.gp");
    if (script) write_script(script, &best, tokenizer, ids);
    lm_close(ctx, script, "attention.gp");
    free(best.weight);
    gr_context_reset(ctx);
}
