#include "figure.h"
#include "progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The stream of the windows that a validation draws: the same ones each time, so that two validations compare. */
enum { VALIDATION_STREAM = GR_STREAM_USER + 1 };
enum { FINAL_BATCHES = 100 }; /* of the last validation, at least */
enum { PICTURE_BYTES = 16 };  /* of the text in the attention picture, when none is given */

typedef struct trainer {
    const lm_settings *set;
    gr_context *ctx;
    gr_corpus *corpus;
    gr_gpt *gpt;
    gr_adamw *adamw;
    gr_rng rng;       /* of the windows to learn from */
    int32_t *picture; /* ids of the text in the attention picture */
    int64_t picture_count;
    FILE *log;
    lm_progress progress;
} trainer;

/* -- Before the first step: all that can be wrong is found here, before a file is written ---------------------------
 */

static int check_settings(const lm_settings *set) {
    if (set->width % set->heads != 0)
        return lm_wrong_usage(set, "--heads %" PRId64 " does not divide --width %" PRId64, set->heads, set->width);
    if (set->min_lr > set->lr)
        return lm_wrong_usage(set, "--min-lr %g is above --lr %g, from which it comes down", set->min_lr, set->lr);
    return 0;
}

/* A window is `context` inputs and the target of the last. */
/* The words of --attention are in the order of the kinds, which begin with the default. */
static gr_attention_kind attention_kind(const lm_settings *set) {
    return (gr_attention_kind)(GR_TEXTBOOK + set->attention);
}

static void check_corpus(const trainer *t) {
    const uint64_t window = (uint64_t)t->set->context + 1, validation = gr_corpus_size(t->corpus, GR_VALIDATION);
    const uint64_t have = gr_corpus_size(t->corpus, GR_TRAIN) + validation;
    if (have < window)
        gr_fail(t->ctx, t->set->data,
                "have %" PRIu64 " bytes, need at least %" PRIu64 ": a window of --context %" PRId64 " and one more",
                have, window, t->set->context);
    if (validation < window)
        gr_fail(t->ctx, t->set->data,
                "have %" PRIu64 " bytes for validation (the last tenth), need at least %" PRIu64
                ": a window of --context %" PRId64 " and one more",
                validation, window, t->set->context);
}

/* Text that has to be in the vocabulary: of the prompt, and of the picture, by default the first bytes to validate
 * with. */
static void check_texts(trainer *t) {
    const lm_settings *set = t->set;
    const gr_tokenizer *tokenizer = gr_corpus_tokenizer(t->corpus);
    const lm_text prompt = {"--prompt", set->prompt, strlen(set->prompt)};
    lm_text picture = {"--attend", set->attend, strlen(set->attend)};
    if (!gr_ok(t->ctx)) return;
    free(lm_encode(t->ctx, tokenizer, prompt, (size_t)set->bytes)); /* and room for the sample */
    if (picture.size == 0) {
        const size_t have = gr_corpus_size(t->corpus, GR_VALIDATION);
        picture.bytes = (const char *)gr_corpus_bytes(t->corpus, GR_VALIDATION);
        picture.size = have < PICTURE_BYTES ? have : PICTURE_BYTES;
    }
    t->picture = lm_encode(t->ctx, tokenizer, picture, 0);
    t->picture_count = (int64_t)picture.size;
    if (t->picture_count > set->context) t->picture_count = set->context;
}

static bool prepare(trainer *t) {
    const lm_settings *set = t->set;
    t->corpus = gr_corpus_open(t->ctx, set->data, (gr_vocab_kind)set->tokenizer);
    check_corpus(t);
    check_texts(t);
    const gr_attention_style style = {attention_kind(set), set->window, set->global, set->block};
    t->gpt = gr_gpt_new(t->ctx, (gr_gpt_config){.vocab = gr_corpus_vocab(t->corpus),
                                                .context = set->context,
                                                .layers = set->layers,
                                                .heads = set->heads,
                                                .width = set->width,
                                                .dropout = set->dropout,
                                                .style = style,
                                                .positions = (gr_positions)set->positions,
                                                .seed = (uint64_t)set->seed});
    t->adamw =
        gr_adamw_new(t->ctx, (gr_adamw_config){.beta1 = set->beta1, .beta2 = set->beta2, .weight_decay = set->decay});
    t->rng = gr_rng_seed((uint64_t)set->seed);
    gr_context_reset(t->ctx);
    static const char *const files[] = {LM_MODEL, "loss.gp", "attention.gp", "attention.tsv"};
    lm_make_directory(t->ctx, set->out);
    lm_can_hold(t->ctx, set->out, files, sizeof files / sizeof *files);
    t->log = lm_create(t->ctx, set->out, LM_LOG);
    if (t->log) fputs("step\tloss\tvalidation_loss\tlearning_rate\tgradient_norm\ttokens_per_second\n", t->log);
    return gr_ok(t->ctx);
}

/* -- Training ------------------------------------------------------------------------------------------------------ */

/* The mean loss of windows drawn from the validation part; in nats a byte. */
static double validate(trainer *t, int64_t batches) {
    const gr_rng seed = gr_rng_seed((uint64_t)t->set->seed);
    gr_rng rng = gr_rng_stream(seed, VALIDATION_STREAM);
    double sum = 0;
    gr_gpt_training(t->gpt, false);
    gr_no_grad_begin(t->ctx);
    for (int64_t i = 0; i < batches && gr_ok(t->ctx); i++) {
        const gr_batch batch = gr_corpus_batch(t->corpus, GR_VALIDATION, &rng, t->set->batch, t->set->context);
        sum += gr_item(gr_cross_entropy(gr_gpt_forward(t->gpt, batch.inputs), batch.targets));
        gr_context_reset(t->ctx);
    }
    gr_no_grad_end(t->ctx);
    gr_gpt_training(t->gpt, true);
    return sum / (double)batches;
}

static void save(trainer *t) {
    char path[LM_PATH] = "";
    lm_path(t->ctx, path, t->set->out, LM_MODEL);
    gr_gpt_save(t->gpt, gr_corpus_tokenizer(t->corpus), path);
    gr_context_reset(t->ctx);
}

/* Step number `step`, from 0: forward, backward, update. */
static lm_record train_step(trainer *t, int64_t step) {
    const lm_settings *set = t->set;
    const double begun = lm_now();
    lm_record r = {.step = step + 1, .validation = (double)NAN};
    r.lr = gr_cosine(step, (gr_cosine_config){set->lr, set->min_lr, set->warmup, set->steps});
    const gr_batch batch = gr_corpus_batch(t->corpus, GR_TRAIN, &t->rng, set->batch, set->context);
    gr_tensor *logits = gr_gpt_forward(t->gpt, batch.inputs);  /* (B, T, V) */
    gr_tensor *loss = gr_cross_entropy(logits, batch.targets); /* () */
    r.loss = gr_item(loss);
    gr_backward(loss);
    r.norm = gr_clip_grad_norm(t->ctx, set->clip > 0 ? set->clip : (double)INFINITY);
    gr_adamw_step(t->adamw, r.lr);
    gr_zero_grad(t->ctx);
    gr_context_reset(t->ctx);
    r.tokens_per_second = (double)set->batch * (double)set->context / (lm_now() - begun);
    return r;
}

static void write_log(FILE *log, const lm_record *r) {
    char validation[32] = ""; /* an empty field: not measured at this step */
    if (!isnan(r->validation)) snprintf(validation, sizeof validation, "%.6f", r->validation);
    fprintf(log, "%" PRId64 "\t%.6f\t%s\t%.6g\t%.6g\t%.0f\n", r->step, r->loss, validation, r->lr, r->norm,
            r->tokens_per_second);
}

/* Gives the last validation loss. */
static double train(trainer *t) {
    const lm_settings *set = t->set;
    lm_record r = {.step = 0};
    lm_progress_begin(&t->progress, set->steps, set->quiet);
    if (set->profile) gr_profile_begin(t->ctx);
    for (int64_t step = 0; step < set->steps && gr_ok(t->ctx); step++) {
        r = train_step(t, step);
        const bool last = r.step == set->steps;
        if (gr_ok(t->ctx) && (last || r.step % set->eval_interval == 0)) {
            const int64_t batches = last && set->eval_batches < FINAL_BATCHES ? FINAL_BATCHES : set->eval_batches;
            r.validation = validate(t, batches);
            save(t);
            fflush(t->log);
        }
        if (!gr_ok(t->ctx)) break;
        write_log(t->log, &r);
        lm_progress_step(&t->progress, &r);
    }
    lm_progress_end(&t->progress);
    if (set->profile) gr_profile_print(t->ctx, stdout);
    return r.validation;
}

/* -- From beginning to end ----------------------------------------------------------------------------------------- */

static void announce(const trainer *t) {
    if (t->set->quiet) return;
    fprintf(stderr,
            "%" PRId64 " weights learn from %zu bytes of %s (%zu more for validation, %" PRId64 " different bytes)\n",
            gr_parameter_numel(t->ctx), gr_corpus_size(t->corpus, GR_TRAIN), t->set->data,
            gr_corpus_size(t->corpus, GR_VALIDATION), gr_corpus_vocab(t->corpus));
}

static void report(trainer *t, double validation) {
    const double bigram = gr_corpus_bigram_loss(t->corpus, GR_VALIDATION);
    gr_context_reset(t->ctx);
    if (!gr_ok(t->ctx)) return;
    printf("validation loss %.4f nats a byte (%.0f s of training)\n", validation, lm_now() - t->progress.begun);
    printf("bigram loss     %.4f, what counts of byte pairs reach on the same text\n", bigram);
    if (!(validation < bigram))
        puts("The model is no better than counting pairs; more --steps or a smaller --lr may help.");
    putchar('\n');
    lm_continue(t->set, t->gpt, gr_corpus_tokenizer(t->corpus), t->set->bytes);
    lm_write_loss_script(t->set, t->ctx, bigram);
    const bool has_weights = attention_kind(t->set) != GR_LINEAR;
    if (has_weights) lm_write_attention(t->set, t->gpt, gr_corpus_tokenizer(t->corpus), t->picture, t->picture_count);
    if (!gr_ok(t->ctx)) return;
    if (lm_draw(t->set, "loss") && has_weights) lm_draw(t->set, "attention");
    if (!t->set->quiet)
        fprintf(stderr, "\nall is in %s; %s sample --model %s writes more\n", t->set->out, t->set->program,
                t->set->out);
}

int lm_train(const lm_settings *set) {
    if (check_settings(set) != 0) return LM_USAGE;
    trainer t = {.set = set, .ctx = gr_context_new()};
    if (prepare(&t)) {
        announce(&t);
        const double validation = train(&t);
        lm_close(t.ctx, t.log, LM_LOG);
        report(&t, validation);
    } else if (t.log) {
        fclose(t.log);
    }
    free(t.picture);
    return lm_end(set, t.ctx);
}
