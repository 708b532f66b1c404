/* Lesson 8: what does "it" stand for? A model of two layers learns sentences whose last word depends on that, is asked
 * about pairs of nouns it never saw together, and shows where "it" looks. */
#include <gradus.h>

#include "plot.h"
#include "sentences.h"

enum { BATCH = 32, STEPS = 800, WARMUP = 50, C = 32, HEADS = 2, NEAR = 4, SEEDS = 6, SHOWN = 4 };

static gr_gpt *train(gr_context *ctx, uint64_t seed, int near) {
    gr_gpt *gpt = gr_gpt_new(
        ctx, (gr_gpt_config){.vocab = V, .context = T, .layers = 2, .heads = HEADS, .width = C, .seed = seed});
    gpt->h[0].attn.style = (gr_attention_style){.kind = GR_WINDOW, .window = near}; /* of the first layer */
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.weight_decay = 0.1});
    gr_rng rng = gr_rng_seed(seed);
    for (int step = 0; step < STEPS; step++, gr_zero_grad(ctx), gr_context_reset(ctx)) {
        int32_t in[BATCH * T], target[BATCH * T], s[T + 1];
        for (int b = 0, living, place; b < BATCH; b++) {
            do living = (int)gr_rng_below(&rng, KIND), place = (int)gr_rng_below(&rng, KIND);
            while (unseen(living, place));
            sentence(s, living, place, (int)gr_rng_below(&rng, 2), (int)gr_rng_below(&rng, 2 * HOW));
            for (int i = 0; i < T; i++) in[b * T + i] = s[i], target[b * T + i] = i < T - 1 ? GR_IGNORE : s[T];
        }
        gr_tensor *logits = gr_gpt_forward(gpt, (gr_tokens){in, BATCH, T});               /* (B, T, V) */
        if (!gr_backward(gr_cross_entropy(logits, (gr_tokens){target, BATCH, T}))) break; /* of the last word alone */
        gr_adamw_step(adamw, gr_cosine(step, (gr_cosine_config){.peak = 3e-3, .warmup = WARMUP, .total = STEPS}));
    }
    gpt->keep_weights = true;
    return gpt;
}

static int largest(const gr_real *x, int count) {
    int best = 0;
    for (int i = 1; i < count; i++) best = x[i] > x[best] ? i : best;
    return best;
}

/* The word the model adds to the sentence, and the weights of the last "it" in each head of the second layer. */
static int ask(gr_gpt *gpt, const int32_t *s, gr_real it[HEADS][T]) {
    static gr_real logits[T * V], weights[HEADS * T * T];
    gr_to_array(gr_gpt_forward(gpt, (gr_tokens){s, 1, T}), logits);
    if (gr_ok(gpt->ctx)) gr_to_array(gpt->weights[1], weights); /* (1, H, T, T) */
    for (int h = 0; h < HEADS; h++) memcpy(it[h], weights + (h * T + T - 1) * T, sizeof *it);
    gr_context_reset(gpt->ctx);
    return largest(logits + (T - 1) * V, V);
}

/* Of pairs [0] seen, [1] unseen: how many are right, and, by head, in how many the right noun has the largest weight.
 */
typedef struct tally {
    int all, right, found[HEADS];
} tally;
static void test(gr_gpt *gpt, tally of[2]) {
    for (int n = 0; n < KIND * KIND * 2 * 2 * HOW; n++) {
        const int living = n % KIND, place = n / KIND % KIND, rest = n / KIND / KIND;
        int32_t s[T + 1];
        gr_real it[HEADS][T];
        const int noun = sentence(s, living, place, rest % 2, rest / 2);
        tally *t = &of[unseen(living, place)];
        t->all++, t->right += ask(gpt, s, it) == s[T];
        for (int h = 0; h < HEADS; h++) t->found[h] += largest(it[h], T) == noun;
    }
}

/* Answers to unseen pairs, in %, without what head h gives: its columns of W_O are 0 for the time. */
static double without(gr_gpt *gpt, int h) {
    tally t[2] = {{0}};
    gr_real kept[C * C], *w = gr_data(gpt->h[1].attn.c_proj.weight); /* (C, C) */
    memcpy(kept, w, sizeof kept);
    for (int i = 0; i < C * C; i++) w[i] = i % C / (C / HEADS) == h ? 0 : w[i];
    test(gpt, t);
    memcpy(w, kept, sizeof kept);
    return 100.0 * t[1].right / t[1].all;
}

/* Sentences of an unseen pair, one word changed at a time: where head h looks. The first two are the figure's. */
static void show(gr_gpt *gpt, int h, plot *p, bool drawing) {
    int32_t s[4][T + 1];
    gr_real it[4][HEADS][T];
    printf("\nHead %d of seed %d: the weights of the last \"it\", and the word that follows\n", h, SHOWN);
    for (int n = 0; n < 4; n++) {
        sentence(s[n], 0, 0, n / 2, n % 2 ? HOW : 0);
        const int said = ask(gpt, s[n], it[n]);
        for (int i = 0; i < T; i++) printf("%s%s", words[s[n][i]], i < T - 1 ? " " : "\n   ");
        for (int i = 1; i <= 6; i += 5) printf(" %s %.2f,", words[s[n][i]], (double)it[n][h][i]);
        printf(" then \"%s\"\n", words[said]);
    }
    for (int i = 0; i < HEADS; i++) printf("without head %d: %.1f %% right of the unseen\n", i, without(gpt, i));
    for (int i = 0; drawing && i < T; i++)
        fprintf(p->data, "%s%s%s\t%.4f\t%.4f\n", words[s[0][i]], s[0][i] == s[1][i] ? "" : " / ",
                s[0][i] == s[1][i] ? "" : words[s[1][i]], (double)it[0][h][i], (double)it[1][h][i]);
}

int main(int argc, char **argv) {
    plot p;
    int status = 0;
    const bool drawing = plot_open(&p, argc, argv, "08_it_finds_its_noun.svg", 900, 380);
    printf("               right answers, pairs        right noun first, pairs\n"
           "seed  layer 1  seen     unseen      head   seen     unseen\n");
    for (int row = 0; row <= SEEDS; row++) { /* the first: a layer 1 that sees all; the last: the one looked into */
        const int seed = row ? (row + SHOWN - 1) % SEEDS + 1 : SHOWN;
        tally t[2] = {{0}};
        gr_context *ctx = gr_context_new();
        gr_gpt *gpt = train(ctx, (uint64_t)seed, row ? NEAR : T);
        test(gpt, t);
        const int h = t[0].found[1] > t[0].found[0];
        printf("%3d   %s", seed, row ? "near 4" : "all   ");
        for (int i = 0; i < 2; i++) printf("  %5.1f %%", 100.0 * t[i].right / t[i].all);
        printf("%8d   %5.1f %%  %5.1f %%\n", h, 100.0 * t[0].found[h] / t[0].all, 100.0 * t[1].found[h] / t[1].all);
        if (row == SEEDS) show(gpt, h, &p, drawing);
        status |= gr_context_report(ctx);
        gr_context_free(ctx);
    }
    if (drawing)
        fprintf(p.script,
                "set style data histograms\nset style fill solid noborder\nset grid noxtics\nset yrange [0:1.05]\n"
                "set xtics rotate by -40 scale 0\nset ylabel 'weight of the last \"it\"'\n"
                "plot data using 2:xtic(1) ls 1 title 'too tired', '' using 3 ls 2 title 'too wide'\n");
    return drawing && !plot_close(&p) ? 1 : status;
}
