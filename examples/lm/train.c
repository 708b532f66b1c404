#include "figure.h"
#include "run.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* The stream of the windows that a validation draws: the same ones each time, so that two validations compare. */
enum { VALIDATION_STREAM = GR_STREAM_USER + 1 };
enum { FINAL_BATCHES = 100 }; /* of the validation at the end, at least */

/* A loss above this many times that of equal chances, ln V, is of a training that has gone astray. */
static const double ASTRAY = 10;

/* -- Signals: the first ends the run behind its step, a later one at once ------------------------------------------ */

enum { BY_SIGNAL = 128 }; /* added to the signal's number, as shells do: 130 for Ctrl-C, 143 for SIGTERM */

volatile sig_atomic_t lm_stopped; /* the signal's number */

/* One wish to stop may come as two signals: timeout(1) sends its own to the program and to its group. */
enum { ONE_WISH = 10 }; /* tenths of a second */

/* In any thread, and in two at once. */
static void stop(int signal_number) {
    static atomic_long first; /* when it came, in tenths of a second; 0: none did */
    const long now = 1 + (long)(10 * lm_now());
    long before = 0;
    if (atomic_compare_exchange_strong(&first, &before, now))
        lm_stopped = signal_number;
    else if (now - before > ONE_WISH)
        _exit(BY_SIGNAL + signal_number);
}

/* One that the parent ignores stays so: nohup and "lm train ... &" in a script want it. */
static void listen_to(int signal_number) {
    struct sigaction action;
    if (sigaction(signal_number, NULL, &action) == 0 && action.sa_handler == SIG_IGN) return;
    memset(&action, 0, sizeof action);
    action.sa_handler = stop;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, NULL);
}

/* -- One step ------------------------------------------------------------------------------------------------------ */

/* Of a batch: its gradient is added, 1 / accumulation of it; gives its loss. */
static double learn(lm_run *run) {
    const lm_settings *set = run->set;
    const gr_batch batch = gr_corpus_batch(run->corpus, GR_TRAIN, &run->at.rng, set->batch, set->context);
    gr_tensor *logits = gr_gpt_forward(run->gpt, batch.inputs); /* (B, T, V) */
    gr_tensor *loss = gr_cross_entropy(logits, batch.targets);  /* () */
    const double value = gr_item(loss);
    gr_backward(set->accumulation > 1 ? gr_scale(loss, 1 / (double)set->accumulation) : loss);
    gr_context_reset(run->ctx);
    return value;
}

/* The first parameter in which a number is not finite or, if all are, the first gradient. */
static void name_broken(gr_context *ctx, char *out, size_t room) {
    const int count = gr_parameter_count(ctx);
    for (int i = 0; i < 2 * count; i++) {
        gr_tensor *w = gr_parameter_at(ctx, i % count);
        const bool gradient = i >= count;
        const int64_t at = lm_first_broken(gradient ? gr_grad(w) : w);
        if (at < 0) continue;
        snprintf(out, room, "; the first that is not finite: %s%s, element %" PRId64 " of %" PRId64,
                 gradient ? "the gradient of " : "", gr_name(w), at, gr_numel(w));
        return;
    }
    *out = '\0';
}

static double limit(const lm_run *run) {
    const double vocab = (double)run->gpt->config.vocab;
    return ASTRAY * log(vocab > 2 ? vocab : 2);
}

static bool astray(const lm_run *run, double loss) { return !(loss <= limit(run)); }

/* Says where a training has lost its way; nothing is saved of it. (fabs takes the sign off a NaN.) */
static void report_astray(lm_run *run, const lm_record *r, const char *what, double loss) {
    char broken[256], good[LM_PATH + 64] = "nothing was saved yet";
    gr_error_clear(run->ctx);
    gr_context_reset(run->ctx);
    name_broken(run->ctx, broken, sizeof broken);
    if (run->saved >= 0)
        snprintf(good, sizeof good, "last good checkpoint: %s/%s of step %" PRId64, run->set->out, LM_LAST, run->saved);
    gr_fail(run->ctx, what,
            "%g at step %" PRId64 ", the limit is %g ln V = %.1f: the training has run away (learning rate %g, "
            "gradient norm %g)%s; %.200s; a smaller --lr may help",
            fabs(loss), r->step, ASTRAY, limit(run), r->lr, fabs(r->norm), broken, good);
}

static double rate_at(const lm_settings *set, int64_t step, int64_t total) {
    return gr_cosine(step, (gr_cosine_config){set->lr, set->min_lr, set->warmup, total});
}

/* Step number run->at.step, from 0: forward and backward of each batch, clip, update. */
static lm_record train_step(lm_run *run) {
    const lm_settings *set = run->set;
    const double begun = lm_now();
    lm_record r = {.step = run->at.step + 1, .validation = (double)NAN};
    r.lr = rate_at(set, run->at.step, set->lr_steps > 0 ? set->lr_steps : set->steps);
    for (int64_t i = 0; i < set->accumulation; i++) r.loss += learn(run) / (double)set->accumulation;
    const bool ran = gr_ok(run->ctx); /* up to here a number that is not finite is no error */
    r.norm = gr_clip_grad_norm(run->ctx, set->clip > 0 ? set->clip : (double)INFINITY);
    if (ran && (isnan(r.norm) || astray(run, r.loss))) {
        report_astray(run, &r, "loss", r.loss);
        return r;
    }
    gr_adamw_step(run->adamw, r.lr);
    gr_zero_grad(run->ctx);
    run->at.step = r.step;
    const double tokens = (double)set->batch * (double)set->context * (double)set->accumulation;
    r.tokens_per_second = tokens / (lm_now() - begun);
    return r;
}

/* -- Between the steps --------------------------------------------------------------------------------------------- */

/* The mean loss of windows drawn from the validation part; in nats a byte. */
static double validate(lm_run *run, int64_t batches) {
    const lm_settings *set = run->set;
    gr_rng rng = gr_rng_stream(gr_rng_seed((uint64_t)set->seed), VALIDATION_STREAM);
    double sum = 0;
    gr_gpt_training(run->gpt, false);
    gr_no_grad_begin(run->ctx);
    for (int64_t i = 0; i < batches && gr_ok(run->ctx); i++) {
        const gr_batch batch = gr_corpus_batch(run->corpus, GR_VALIDATION, &rng, set->batch, set->context);
        sum += gr_item(gr_cross_entropy(gr_gpt_forward(run->gpt, batch.inputs), batch.targets));
        gr_context_reset(run->ctx);
    }
    gr_no_grad_end(run->ctx);
    gr_gpt_training(run->gpt, true);
    return sum / (double)batches;
}

static void write_sample(lm_run *run) {
    const lm_text prompt = {"--prompt", run->set->prompt, strlen(run->set->prompt), NULL};
    gr_rng rng = lm_sample_rng(run->set);
    lm_continue(run->set, run->gpt, gr_corpus_tokenizer(run->corpus), prompt, &rng);
}

/* Validates, writes the row of the log, saves what has been validated. */
static void finish_step(lm_run *run, lm_record *r, bool last) {
    const lm_settings *set = run->set;
    const bool due = last || r->step % set->eval_interval == 0;
    if (due) r->validation = validate(run, set->eval_batches);
    if (!gr_ok(run->ctx)) return;
    if (due && astray(run, r->validation)) {
        report_astray(run, r, "validation loss", r->validation);
        return;
    }
    lm_run_log(run, r);
    const bool best = due && r->validation < run->at.best;
    if (best) run->at.best = r->validation;
    if (due) lm_run_save(run, best);
}

static void show_step(lm_run *run, const lm_record *r, bool last) {
    const int64_t interval = run->set->sample_interval;
    lm_progress_step(&run->progress, r);
    if (last || interval == 0 || r->step % interval != 0) return;
    lm_progress_end(&run->progress);
    printf("\n--- step %" PRId64 "\n", r->step);
    write_sample(run);
    putchar('\n');
    fflush(stdout);
}

static void train(lm_run *run) {
    const lm_settings *set = run->set;
    lm_progress_begin(&run->progress, run->at.step, set->steps, set->quiet);
    if (set->profile) gr_profile_begin(run->ctx);
    while (run->at.step < set->steps && gr_ok(run->ctx) && !lm_stopped) {
        lm_record r = train_step(run);
        const bool last = r.step == set->steps;
        if (gr_ok(run->ctx)) finish_step(run, &r, last);
        if (gr_ok(run->ctx)) show_step(run, &r, last);
    }
    if (gr_ok(run->ctx) && lm_stopped && run->saved != run->at.step) lm_run_save(run, false);
    lm_progress_end(&run->progress);
    if (set->profile) gr_profile_print(run->ctx, stdout);
}

/* -- From beginning to end ----------------------------------------------------------------------------------------- */

static void announce_resumed(const lm_run *run) {
    const lm_settings *set = run->set;
    const int64_t done = run->at.step, before = set->steps_before;
    if (run->saved < 0)
        fprintf(stderr, "no saved state in %s: begins anew\n", set->out);
    else if (done == set->steps)
        fprintf(stderr, "%s has done all its %" PRId64 " steps; --steps %" PRId64 " goes on\n", set->out, done,
                2 * done);
    else
        fprintf(stderr, "goes on with step %" PRId64 " of %" PRId64 "\n", done + 1, set->steps);
    if (before > 0 && before < set->steps && set->lr_steps == 0)
        fprintf(stderr,
                "the cosine is stretched to %" PRId64 " steps: lr %.1e -> %.1e; --lr-steps %" PRId64 " keeps it\n",
                set->steps, rate_at(set, done, before), rate_at(set, done, set->steps), before);
}

static void announce(const lm_run *run) {
    const lm_list *data = &run->set->data;
    if (run->set->quiet) return;
    fprintf(stderr, "%" PRId64 " weights learn from %zu bytes of %s", gr_parameter_numel(run->ctx),
            gr_corpus_size(run->corpus, GR_TRAIN), lm_shown(data->item[0]));
    if (data->count > 1) fprintf(stderr, " and %d more file%s", data->count - 1, data->count > 2 ? "s" : "");
    fprintf(stderr, " (%zu more for validation, %" PRId64 " different byte%s)\n",
            gr_corpus_size(run->corpus, GR_VALIDATION), gr_corpus_vocab(run->corpus),
            gr_corpus_vocab(run->corpus) == 1 ? "" : "s");
    if (*run->set->resume) announce_resumed(run);
}

/* Of the best weights, which the other commands work with: the numbers and the text are theirs. */
static void report(lm_run *run) {
    const lm_settings *set = run->set;
    const double seconds = lm_now() - run->progress.begun;
    run->gpt = lm_load(run->ctx, set->out, NULL);
    if (!gr_ok(run->ctx)) return;
    const int64_t batches = set->eval_batches > FINAL_BATCHES ? set->eval_batches : FINAL_BATCHES;
    const double loss = validate(run, batches);
    const double bigram = gr_corpus_bigram_loss(run->corpus, GR_VALIDATION);
    gr_context_reset(run->ctx);
    if (!gr_ok(run->ctx)) return;
    printf("validation loss %.4f nats a byte, over %" PRId64 " batches (%.0f s of training)\n", loss, batches, seconds);
    printf("bigram loss     %.4f, what counts of byte pairs reach on the same text\n", bigram);
    if (loss > bigram) puts("The model is no better than counting pairs; more --steps or a smaller --lr may help.");
    putchar('\n');
    write_sample(run);
    if (lm_stopped) return;
    lm_draw_log(set, run->ctx, set->out, bigram);
    lm_draw_one_head(set, run->gpt, gr_corpus_tokenizer(run->corpus), run->picture, run->picture_count);
    if (gr_ok(run->ctx) && !set->quiet) {
        char program[LM_PATH], out[LM_PATH];
        fprintf(stderr, "\nall is in %s; %s sample --model %s writes more\n", set->out,
                lm_quoted(program, set->program), lm_quoted(out, set->out));
    }
}

static int check_settings(const lm_settings *set) {
    if (lm_check_model(set) != 0) return LM_USAGE;
    if (set->min_lr > set->lr)
        return lm_wrong_usage(set, "--min-lr %g is above --lr %g, from which it comes down", set->min_lr, set->lr);
    if (*set->resume && set->steps < set->steps_before)
        return lm_wrong_usage(set, "--steps %" PRId64 ": the run to resume has %" PRId64 ", which may only grow",
                              set->steps, set->steps_before);
    return 0;
}

int lm_train(const lm_settings *set) {
    if (check_settings(set) != 0) return LM_USAGE;
    lm_run run = {.set = set, .ctx = gr_context_new()};
    if (lm_run_begin(&run)) {
        announce(&run);
        listen_to(SIGINT);
        listen_to(SIGTERM);
        train(&run);
        if (gr_ok(run.ctx) && !lm_stopped) report(&run);
    }
    lm_run_end(&run);
    if (lm_stopped && gr_ok(run.ctx) && run.at.step < set->steps && !set->quiet) {
        char program[LM_PATH], out[LM_PATH];
        fprintf(stderr, "stopped after step %" PRId64 "; %s train --resume %s goes on\n", run.at.step,
                lm_quoted(program, set->program), lm_quoted(out, set->out));
    }
    const int status = lm_end(set, run.ctx);
    return lm_stopped && status == 0 ? BY_SIGNAL + lm_stopped : status;
}
