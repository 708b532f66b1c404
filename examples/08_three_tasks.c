/* Lesson 8, second part: three tasks whose attention can be read off, each learned from random strings in seconds. */
#include <gradus.h>

#include "plot.h"

enum { LETTERS = 16, BAR = LETTERS, VOCAB, HALF = 8, T = 2 * HALF, BATCH = 32, STEPS = 600, WARMUP = 50, TESTED = 200 };
enum { COPY, REVERSE, INDUCTION, TASKS, SHORTEST = 5 /* period of an induction string; the longest is HALF */ };
static const char *const name[TASKS] = {"copying", "reversing", "induction"};
static const double peak_rate = 3e-3;

/* T + 1 ids: abcd|abcd, abcd|dcba, or, for induction, different letters over and over, abcabcabca. Returns the first
 * place after which the next id can be known. */
static int make(int task, int32_t s[T + 1], gr_rng *rng) {
    int32_t letter[LETTERS] = {0};
    for (int i = 0; i < LETTERS; i++) { /* a random order (Fisher and Yates) */
        const int j = (int)gr_rng_below(rng, (uint64_t)i + 1);
        letter[i] = letter[j], letter[j] = i;
    }
    const int period = SHORTEST + (int)gr_rng_below(rng, HALF - SHORTEST + 1);
    for (int i = 0; i <= T; i++)
        s[i] = task == INDUCTION ? letter[i % period]
               : i < HALF        ? letter[i]
               : i == HALF       ? BAR
               : task == COPY    ? letter[i - HALF - 1]
                                 : letter[T - i];
    return task == INDUCTION ? period : HALF;
}

/* Copying and reversing: one layer, one head. Induction: two; the first sees a token and the one before it only. */
static gr_gpt *train(gr_context *ctx, int task, gr_rng *rng) {
    const bool induction = task == INDUCTION;
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = VOCAB,
                                                  .context = T,
                                                  .layers = induction ? 2 : 1,
                                                  .width = 32,
                                                  .positions = induction ? GR_ROTARY : GR_LEARNED,
                                                  .seed = 8});
    if (induction) gpt->h[0].attn.style = (gr_attention_style){.kind = GR_WINDOW, .window = 2};
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.weight_decay = 0.1});
    for (int step = 0; step < STEPS; step++) {
        int32_t in[BATCH * T], target[BATCH * T], s[T + 1];
        for (int b = 0; b < BATCH; b++) {
            const int from = make(task, s, rng);
            for (int i = 0; i < T; i++) in[b * T + i] = s[i], target[b * T + i] = i < from ? GR_IGNORE : s[i + 1];
        }
        gr_tensor *logits = gr_gpt_forward(gpt, (gr_tokens){in, BATCH, T}); /* (B, T, V) */
        if (!gr_backward(gr_cross_entropy(logits, (gr_tokens){target, BATCH, T}))) break;
        gr_clip_grad_norm(ctx, 1);
        gr_adamw_step(adamw, gr_cosine(step, (gr_cosine_config){.peak = peak_rate, .warmup = WARMUP, .total = STEPS}));
        gr_zero_grad(ctx);
        gr_context_reset(ctx);
    }
    gpt->keep_weights = true;
    return gpt;
}

static int largest(const gr_real *x, int count) {
    int best = 0;
    for (int i = 1; i < count; i++) best = x[i] > x[best] ? i : best;
    return best;
}

/* New strings: how often the next id is right, and how often the last layer's largest weight lies at a place that holds
 * it. The last string and its weights stay in s and weights. */
static void test(gr_gpt *gpt, int task, gr_rng *rng, int32_t s[T + 1], gr_real weights[T * T]) {
    gr_real logits[T * VOCAB];
    int count = 0, right = 0, found = 0;
    for (int n = 0; n < TESTED; n++, gr_context_reset(gpt->ctx)) {
        const int from = make(task, s, rng);
        if (!gr_to_array(gr_gpt_forward(gpt, (gr_tokens){s, 1, T}), logits)) return;
        gr_to_array(gpt->weights[gpt->config.layers - 1], weights); /* (1, 1, T, T) */
        for (int i = from; i < T; i++, count++) {
            right += largest(logits + i * VOCAB, VOCAB) == s[i + 1];
            found += s[largest(weights + i * T, T)] == s[i + 1];
        }
    }
    printf("%-10s  %5.1f %%          %5.1f %%                 ", name[task], 100.0 * right / count,
           100.0 * found / count);
    for (int i = 0; i <= T; i++) putchar(s[i] == BAR ? '|' : 'a' + s[i]);
    putchar('\n');
}

/* A panel: rows are the places i that ask, columns the places j <= i that are looked at. */
static void draw(plot *p, int task, const int32_t s[T + 1], const gr_real *weights) {
    const char *axis[] = {"x", "y"};
    for (int i = 0; i < T * T; i++) fprintf(p->data, "%.3f%s", (double)weights[i], i % T == T - 1 ? "\n" : "\t");
    fprintf(p->data, "\n\n");
    for (int a = 0; a < 2; a++) {
        fprintf(p->script, "set %stics scale 0 font 'sans,12' (", axis[a]);
        for (int i = 0; i < T; i++) fprintf(p->script, "%s'%c' %d", i ? ", " : "", s[i] == BAR ? '|' : 'a' + s[i], i);
        fprintf(p->script, ")\n");
    }
    fprintf(p->script, "set title '%s'\nplot data index %d matrix with image pixels notitle\n", name[task], task);
}

int main(int argc, char **argv) {
    plot p;
    const bool drawing = plot_open(&p, argc, argv, "08_three_tasks.png", 1100, 430);
    if (drawing)
        fprintf(p.script,
                "set multiplot layout 1,3 margins 0.06,0.93,0.15,0.92 spacing 0.04,0\nset size ratio 1\n"
                "unset grid\nset xrange [-0.5:%d.5]\nset yrange [%d.5:-0.5]\nset cbrange [0:1]\n"
                "set xlabel 'looked at (key)'\nset label 'looks (query)' at screen 0.015,0.5 center rotate\n"
                "set colorbox user origin 0.945,0.22 size 0.012,0.62\n",
                T - 1, T - 1);
    printf("            answers right    largest weight there    a new string\n");
    int status = 0;
    for (int task = 0; task < TASKS; task++) {
        int32_t s[T + 1];
        gr_real weights[T * T];
        gr_context *ctx = gr_context_new();
        gr_rng rng = gr_rng_seed(8);
        test(train(ctx, task, &rng), task, &rng, s, weights);
        if (drawing) draw(&p, task, s, weights);
        status |= gr_context_report(ctx);
        gr_context_free(ctx);
    }
    return drawing && !plot_close(&p) ? 1 : status;
}
