/* bits [--check FILE [THREADS ...]]: the numbers of a small training, to the last bit.
 *
 * Prints the losses of 20 steps, a checksum of all weights, and one of attention and its gradients, a line each:
 * "float 1 0x1.9d3b5ap+1". --check computes them with every instruction set that runs here and has a fused
 * multiply-add, on these numbers of threads (1 and 3), and compares each time with the lines of this precision in FILE.
 * tests/matrix.sh compares compilers, and writes the file. */
#include "gradus.h"
#include "hash.h"
#include "tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#    include <omp.h>
#endif

enum { STEPS = 20, BATCH = 4, TIME = 32, TEXT_BYTES = 4000, LETTERS = 26, FOLLOWERS = 3, ROOM = 4096, LINE = 256 };

/* After each letter one of three others: something to learn, and no file to read. */
static gr_corpus *letters(gr_context *ctx) {
    uint8_t text[TEXT_BYTES];
    gr_rng rng = gr_rng_stream(gr_rng_seed(7), GR_STREAM_USER);
    uint64_t letter = 0;
    for (int i = 0; i < TEXT_BYTES; i++) {
        letter = (5 * letter + gr_rng_below(&rng, FOLLOWERS)) % LETTERS;
        text[i] = (uint8_t)('a' + letter);
    }
    return gr_corpus_from(ctx, text, sizeof text, GR_CHARS);
}

static uint64_t hash(uint64_t so_far, gr_tensor *x) { return hash_numbers(so_far, gr_data(x), (size_t)gr_numel(x)); }

static uint64_t weights_hash(gr_context *ctx) {
    uint64_t all = hash_of_nothing;
    for (int k = 0; k < gr_parameter_count(ctx); k++) all = hash(all, gr_parameter_at(ctx, k));
    return all;
}

/* Attention over several tiles, which the model's short context has not: its output and its three gradients. */
static uint64_t attention_hash(gr_context *ctx) {
    enum { OPERANDS = 3 }; /* q, k, v */
    const gr_shape shape = GR_SHAPE(1, 2, 300, 8);
    gr_rng rng = gr_rng_seed(5);
    gr_tensor *x[OPERANDS], *seed = gr_normal(ctx, shape, 0, 1, &rng);
    for (int i = 0; i < OPERANDS; i++) x[i] = gr_requires_grad(gr_normal(ctx, shape, 0, 1, &rng));
    gr_tensor *y =
        gr_attention(x[0], x[1], x[2], (gr_attention_options){.mask = gr_mask_causal(), .dropout = 0.1, .rng = &rng});
    uint64_t all = hash(hash_of_nothing, y);
    if (!gr_backward_from(y, seed)) return 0;
    for (int i = 0; i < OPERANDS; i++) all = hash(all, gr_grad(x[i]));
    gr_context_reset(ctx);
    return all;
}

static int write_hash(char *out, int at, const char *what, uint64_t value) {
    return snprintf(out + at, (size_t)(ROOM - at), GR_REAL_NAME " %s 0x%016llx\n", what, (unsigned long long)value);
}

/* The training loop of examples/training_loop.c; its lines are put in out. False, with a message, after an error. */
static bool compute(char out[ROOM]) {
    gr_context *ctx = gr_context_new();
    gr_corpus *corpus = letters(ctx);
    gr_gpt *gpt = gr_gpt_new(ctx, (gr_gpt_config){.vocab = gr_corpus_vocab(corpus),
                                                  .context = TIME,
                                                  .layers = 2,
                                                  .heads = 2,
                                                  .width = 32,
                                                  .dropout = 0.1,
                                                  .bias = true,
                                                  .seed = 1337});
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){.weight_decay = 0.1});
    gr_rng rng = gr_rng_seed(1337);
    int at = 0;
    for (int step = 0; step < STEPS; step++) {
        gr_batch batch = gr_corpus_batch(corpus, GR_TRAIN, &rng, BATCH, TIME);
        gr_tensor *loss = gr_cross_entropy(gr_gpt_forward(gpt, batch.inputs), batch.targets);
        if (!gr_backward(loss)) break;
        at += snprintf(out + at, (size_t)(ROOM - at), GR_REAL_NAME " %d %a\n", step + 1, gr_item(loss));
        gr_clip_grad_norm(ctx, 1.0);
        gr_adamw_step(adamw, gr_cosine(step, (gr_cosine_config){.peak = 1e-2, .warmup = 5, .total = STEPS}));
        gr_zero_grad(ctx);
        gr_context_reset(ctx);
    }
    at += write_hash(out, at, "weights", weights_hash(ctx));
    write_hash(out, at, "attention", attention_hash(ctx));
    const bool ok = gr_context_report(ctx) == 0;
    gr_context_free(ctx);
    return ok;
}

/* The lines of this precision. */
static bool read_golden(const char *path, char out[ROOM]) {
    char line[LINE];
    size_t at = 0;
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return false;
    }
    while (fgets(line, sizeof line, file))
        if (strncmp(line, GR_REAL_NAME " ", sizeof GR_REAL_NAME) == 0 && at + strlen(line) < ROOM) {
            strcpy(out + at, line);
            at += strlen(line);
        }
    fclose(file);
    return true;
}

static void use_threads(int threads) {
#ifdef _OPENMP
    omp_set_num_threads(threads);
#else
    (void)threads;
#endif
}

static bool same_here(const char *golden, const char *isa, int threads) {
    static char found[ROOM];
    setenv("GRADUS_ISA", isa, 1);
    use_threads(threads);
    if (!compute(found)) return false;
    const bool same = strcmp(found, golden) == 0;
    printf("%s %s %d thread%s: %s\n", GR_REAL_NAME, isa, threads, threads > 1 ? "s" : "",
           same ? "same bits" : "OTHER BITS");
    if (!same) printf("%s", found);
    return same;
}

static bool check(const char *path, int counts, char **count) {
    static char golden[ROOM];
    if (!read_golden(path, golden)) return false;
    for (int t = 0; t < tables(); t++) {
        const gr_kernels *k = table(t);
        if (!k->exact)
            printf("skipped: %s, without fused multiply-add, rounds differently\n", k->name);
        else
            for (int i = 0; i < counts; i++)
                if (!same_here(golden, k->name, atoi(count[i]))) return false;
    }
    return true;
}

int main(int argc, char **argv) {
    static char out[ROOM];
    char *usual[] = {"1", "3"};
    if (argc >= 3 && strcmp(argv[1], "--check") == 0)
        return (argc > 3 ? check(argv[2], argc - 3, argv + 3) : check(argv[2], 2, usual)) ? EXIT_SUCCESS : EXIT_FAILURE;
    if (argc > 1) {
        fprintf(stderr, "bits [--check FILE [THREADS ...]]\n");
        return EXIT_FAILURE;
    }
    if (!compute(out)) return EXIT_FAILURE;
    fputs(out, stdout);
    return EXIT_SUCCESS;
}
