#include "run.h"

#include "nn/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PICTURE_BYTES = 16 }; /* of the text in the attention picture, when none is given */

static const char HEADER[] = "step\tloss\tvalidation_loss\tlearning_rate\tgradient_norm\n";

/* -- Text and model ------------------------------------------------------------------------------------------------ */

/* Was it named in a config.txt: long ago, and elsewhere perhaps? */
static bool of_file(const lm_settings *set, const char *option) {
    return set->level[lm_find_option(set->command, option, 0) - lm_options] == LM_BY_FILE;
}

static void open_text(lm_run *run, bool resumed) {
    const lm_settings *set = run->set;
    gr_corpus_config config = {.kind = (gr_vocab_kind)set->tokenizer,
                               .validation = set->validation_share,
                               .validation_path = *set->validation ? set->validation : NULL};
    gr_tokenizer tokenizer; /* of a run that goes on: the saved one, whatever its text has become */
    char path[LM_PATH] = "";
    if (resumed && gr_tokenizer_load(run->ctx, lm_path(run->ctx, path, set->out, LM_LAST), &tokenizer))
        config.tokenizer = &tokenizer;
    for (int i = -1; i < set->data.count; i++) {
        const char *input = i < 0 ? set->validation : set->data.item[i], *option = i < 0 ? "validation" : "data";
        if (of_file(set, option) && lm_is_file(input) && access(input, R_OK) != 0)
            gr_fail(run->ctx, *set->resume ? "--resume" : "--config",
                    "%s: cannot open: %s; --%s FILE says where it is now", input, strerror(errno), option);
    }
    if (gr_ok(run->ctx)) run->corpus = gr_corpus_new(run->ctx, set->data.item, set->data.count, config);
}

/* A window is `context` inputs and the target of the last. */
static void check_size(const lm_run *run) {
    const lm_settings *set = run->set;
    const uint64_t window = (uint64_t)set->context + 1;
    if (!gr_ok(run->ctx)) return;
    const uint64_t have = gr_corpus_size(run->corpus, GR_TRAIN);
    const uint64_t validation = gr_corpus_size(run->corpus, GR_VALIDATION);
    if (have < window)
        gr_fail(run->ctx, lm_shown(set->data.item[0]),
                "has %" PRIu64 " bytes to learn from, needs at least %" PRIu64 ": a window of --context %" PRId64
                " and one more",
                have, window, set->context);
    else if (validation < window)
        gr_fail(run->ctx, lm_shown(*set->validation ? set->validation : set->data.item[0]),
                "has %" PRIu64 " bytes for validation%s, needs at least %" PRIu64 ": a window of --context %" PRId64
                " and one more",
                validation, *set->validation ? "" : " (--validation-share of the text, at its end)", window,
                set->context);
}

/* Text that has to be in the vocabulary: of the prompt, and of the picture, by default the first bytes to validate
 * with. */
static void check_texts(lm_run *run) {
    const lm_settings *set = run->set;
    uint8_t first[PICTURE_BYTES];
    if (!gr_ok(run->ctx)) return;
    const gr_tokenizer *tokenizer = gr_corpus_tokenizer(run->corpus);
    const lm_text prompt = {"--prompt", set->prompt, strlen(set->prompt), NULL};
    lm_text picture = {"--attend", set->attend, strlen(set->attend), NULL};
    free(lm_encode(run->ctx, tokenizer, prompt, (size_t)set->bytes)); /* and room for the sample */
    if (picture.size == 0) {
        const size_t have = gr_corpus_size(run->corpus, GR_VALIDATION);
        picture.bytes = (const char *)first;
        picture.size = have < PICTURE_BYTES ? have : PICTURE_BYTES;
        gr_corpus_read(run->corpus, GR_VALIDATION, 0, picture.size, first);
    }
    run->picture = lm_encode(run->ctx, tokenizer, picture, 0);
    run->picture_count = (int64_t)picture.size;
    if (run->picture_count > set->context) run->picture_count = set->context;
}

static void make_model(lm_run *run) {
    const lm_settings *set = run->set;
    if (!gr_ok(run->ctx)) return;
    run->gpt = gr_gpt_new(run->ctx, lm_gpt_config(set, gr_corpus_vocab(run->corpus)));
    run->adamw =
        gr_adamw_new(run->ctx, (gr_adamw_config){.beta1 = set->beta1, .beta2 = set->beta2, .weight_decay = set->decay});
    run->at = (gr_resume){.rng = gr_rng_seed((uint64_t)set->seed), .best = (double)INFINITY};
    gr_context_reset(run->ctx);
}

/* -- The log ------------------------------------------------------------------------------------------------------- */

/* The place in a log behind the row of a step; before it are whole rows only. -1: it cannot be read. */
static long end_of_step(FILE *log, int64_t step) {
    char line[256];
    long end = 0;
    while (fgets(line, sizeof line, log) && strchr(line, '\n') && (end == 0 || strtoll(line, NULL, 10) <= step))
        end = ftell(log);
    return ferror(log) ? -1 : end;
}

/* By errno, which only the call that has failed leaves. */
static void fail_log(lm_run *run) { gr_fail(run->ctx, LM_LOG, "cannot write: %s", strerror(errno)); }

/* The log is open, and locked, as long as the run: two runs in one directory would mix. */
static void open_log(lm_run *run) {
    const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[LM_PATH] = "";
    lm_path(run->ctx, path, run->set->out, LM_LOG);
    if (!gr_ok(run->ctx)) return;
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    run->log = file >= 0 ? fdopen(file, "r+") : NULL;
    if (!run->log)
        gr_fail(run->ctx, path, "cannot write: %s", strerror(errno));
    else if (fcntl(file, F_SETLK, &whole) == 0)
        return;
    else if (errno == EACCES || errno == EAGAIN)
        gr_fail(run->ctx, run->set->out, "another training writes into it");
    else /* a file system may have no locks */
        lm_warn(run->set, "%s cannot be locked: %s; no other training may write into %s", path, strerror(errno),
                run->set->out);
}

/* A new log begins with its header; that of a resumed run is cut back to the steps that its state has. */
static void begin_log(lm_run *run) {
    if (!gr_ok(run->ctx)) return;
    const long end = run->at.step > 0 ? end_of_step(run->log, run->at.step) : 0;
    if (end < 0)
        gr_fail(run->ctx, LM_LOG, "cannot read: %s", strerror(errno));
    else if (fseek(run->log, end, SEEK_SET) != 0 || ftruncate(fileno(run->log), end) != 0 ||
             (end == 0 && fputs(HEADER, run->log) < 0))
        fail_log(run);
}

void lm_run_log(lm_run *run, const lm_record *r) {
    char validation[32] = ""; /* an empty field: not measured at this step */
    if (!isnan(r->validation)) snprintf(validation, sizeof validation, "%.6f", r->validation);
    if (fprintf(run->log, "%" PRId64 "\t%.6f\t%s\t%.6g\t%.6g\n", r->step, r->loss, validation, r->lr, r->norm) < 0)
        fail_log(run);
}

static void flush_log(lm_run *run) {
    if (fflush(run->log) != 0) fail_log(run);
}

/* -- The directory ------------------------------------------------------------------------------------------------- */

/* A run that begins anew has nothing of an older one beside its configuration: if it is killed before its first save,
 * it begins again. The state goes first, since it is what a resumed run goes on with. */
static void forget(lm_run *run) {
    static const char *const names[] = {LM_STATE, LM_LAST, LM_MODEL};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[LM_PATH] = "";
        struct stat old;
        lm_path(run->ctx, path, run->set->out, names[i]);
        if (gr_ok(run->ctx) && lm_look_at(run->ctx, path, &old)) {
            if (run->replaced.st_mode && old.st_gid != run->replaced.st_gid) old.st_mode &= ~(mode_t)S_IRWXG;
            if (run->replaced.st_mode) old.st_mode &= run->replaced.st_mode;
            run->replaced = old;
        }
        if (gr_ok(run->ctx) && unlink(path) != 0 && errno != ENOENT)
            gr_fail(run->ctx, path, "cannot be removed: %s", strerror(errno));
    }
}

/* Every byte that a text has more or less moves the border between its parts, if it has one. */
static void compare_text(lm_run *run) {
    const lm_settings *set = run->set;
    const int64_t size = (int64_t)gr_corpus_size(run->corpus, GR_WHOLE), more = size - run->at.text;
    if (run->saved >= 0 && run->at.text > 0 && more != 0)
        lm_warn(set, "the text has %" PRId64 " bytes %s than when the run was saved%s", more > 0 ? more : -more,
                more > 0 ? "more" : "fewer",
                *set->validation ? "" : ": the parts for training and validation have moved");
    run->at.text = size;
}

/* A training that took its time is not replaced by a slip. */
static void check_directory(const lm_run *run) {
    const lm_settings *set = run->set;
    if (!gr_ok(run->ctx) || *set->resume || set->overwrite) return;
    if (!lm_exists(run->ctx, set->out, LM_MODEL) && !lm_exists(run->ctx, set->out, LM_CONFIG)) return;
    char path[LM_PATH] = "", quoted[LM_PATH], line[256];
    int64_t steps = 0;
    lm_path(run->ctx, path, set->out, LM_LOG);
    FILE *log = lm_open(run->ctx, path);
    while (log && fgets(line, sizeof line, log)) steps = strtoll(line, NULL, 10);
    if (log && ferror(log)) gr_fail(run->ctx, path, "cannot read: %s", strerror(errno));
    if (log) (void)fclose(log); /* only read */
    gr_fail(run->ctx, set->out,
            "holds a training of %" PRId64
            " steps; --resume %s goes on, another --out keeps it, --overwrite replaces it",
            steps, lm_quoted(quoted, set->out));
}

/* What is read must not be one of the files that the run replaces; but its own configuration says the same again. */
static void check_inputs(const lm_run *run) {
    const lm_settings *set = run->set;
    char own[LM_PATH] = "";
    if (!lm_same_file(run->ctx, lm_path(run->ctx, own, set->out, LM_CONFIG), set->config))
        lm_spare(run->ctx, set, set->out, set->config);
    for (int i = -1; i < set->data.count; i++)
        lm_spare(run->ctx, set, set->out, i < 0 ? set->validation : set->data.item[i]);
}

/* A file that is staged has from its beginning the permissions of the one that it will replace, or of those that the
 * run has removed. */
static void stage(lm_run *run, const char *staged, const char *name) {
    struct stat old;
    char from[LM_PATH] = "", to[LM_PATH] = "";
    lm_path(run->ctx, from, run->set->out, staged);
    lm_path(run->ctx, to, run->set->out, name);
    if (!gr_ok(run->ctx)) return;
    if (!lm_look_at(run->ctx, to, &old)) old = run->replaced;
    if (!gr_ok(run->ctx) || !old.st_mode) return;
    unlink(from); /* left by a killed run, it may have others */
    const int file = open(from, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, old.st_mode & S_IRWXU);
    if (file < 0) {
        gr_fail(run->ctx, from, "cannot write: %s", strerror(errno));
        return;
    }
    gr_permit_like(file, &old);
    (void)close(file);
}

/* The staged file takes the old one's place, or goes after an error. */
static void put_in_place(lm_run *run, const char *staged, const char *name) {
    char from[LM_PATH] = "", to[LM_PATH] = "";
    lm_path(run->ctx, from, run->set->out, staged);
    lm_path(run->ctx, to, run->set->out, name);
    if (gr_ok(run->ctx) && rename(from, to) != 0) gr_fail(run->ctx, to, "cannot write: %s", strerror(errno));
    if (!gr_ok(run->ctx)) unlink(from);
}

static bool is_read(const lm_run *run, const char *path) {
    const lm_settings *set = run->set;
    bool is = lm_same_file(run->ctx, path, set->config);
    for (int i = -1; i < set->data.count; i++) {
        const char *input = i < 0 ? set->validation : set->data.item[i];
        is = is || (lm_is_file(input) && lm_same_file(run->ctx, path, input));
    }
    return is;
}

/* Those that cannot be found or removed only take room: a name that ends in LM_NEW is replaced, no other comes again.
 */
static void remove_leftovers(const lm_run *run) {
    DIR *directory = opendir(run->set->out);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char path[LM_PATH] = "";
        if (!lm_is_leftover(entry->d_name)) continue;
        lm_path(run->ctx, path, run->set->out, entry->d_name);
        const bool needed = is_read(run, path);
        if (gr_ok(run->ctx) && !needed) unlink(path);
    }
    if (directory) closedir(directory);
}

bool lm_run_begin(lm_run *run) {
    const lm_settings *set = run->set;
    char path[LM_PATH] = "";
    const bool resumed = *set->resume && lm_exists(run->ctx, set->out, LM_STATE);
    run->saved = -1;
    if (*set->resume && !resumed && lm_exists(run->ctx, set->out, LM_MODEL) && lm_exists(run->ctx, set->out, LM_LAST))
        gr_fail(run->ctx, set->out, "holds weights, but no %s to go on with", LM_STATE);
    check_directory(run);
    open_text(run, resumed);
    check_size(run);
    check_texts(run);
    make_model(run);
    if (resumed && gr_ok(run->ctx) &&
        gr_state_load(run->gpt, run->adamw, &run->at, lm_path(run->ctx, path, set->out, LM_STATE)))
        run->saved = run->at.step;
    if (gr_ok(run->ctx) && run->at.rng.seed != (uint64_t)set->seed)
        gr_fail(run->ctx, "--seed", "%" PRId64 ", but the run began with %" PRIu64, set->seed, run->at.rng.seed);
    if (gr_ok(run->ctx)) compare_text(run);
    if (gr_ok(run->ctx) && run->at.step > set->steps)
        gr_fail(run->ctx, "--steps", "%" PRId64 ", but %s has done %" PRId64 " already", set->steps, set->out,
                run->at.step);
    if (!gr_ok(run->ctx) || !lm_make_directory(run->ctx, set->out)) return false;
    check_inputs(run);
    if (!lm_can_write(run->ctx, set, set->out)) return false;
    open_log(run);
    if (!gr_ok(run->ctx)) return false; /* another training's leftovers are none */
    remove_leftovers(run);
    stage(run, LM_CONFIG LM_NEW, LM_CONFIG);
    lm_write_config(run->ctx, set, LM_CONFIG LM_NEW); /* where that fails, the older run stays whole */
    if (gr_ok(run->ctx) && !resumed) forget(run);
    put_in_place(run, LM_CONFIG LM_NEW, LM_CONFIG);
    begin_log(run);
    return gr_ok(run->ctx);
}

static void stage_model(lm_run *run, const char *staged, const char *name) {
    char path[LM_PATH] = "";
    stage(run, staged, name);
    gr_gpt_save(run->gpt, gr_corpus_tokenizer(run->corpus), lm_path(run->ctx, path, run->set->out, staged));
    gr_context_reset(run->ctx);
}

/* The names are on the disk, too; what the files hold is already. */
static void flush_directory(lm_run *run) {
    if (!gr_ok(run->ctx)) return;
    const int directory = open(run->set->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool flushed = directory >= 0 && (fsync(directory) == 0 || errno == EINVAL); /* see gr_replace_end */
    if (!flushed) gr_fail(run->ctx, run->set->out, "cannot write: %s", strerror(errno));
    if (directory >= 0) (void)close(directory);
}

void lm_run_save(lm_run *run, bool best) {
    char path[LM_PATH] = "";
    const bool model = best || run->saved < 0;
    flush_log(run);
    if (model) stage_model(run, LM_MODEL LM_NEW, LM_MODEL);
    stage_model(run, LM_LAST LM_NEW, LM_LAST);
    stage(run, LM_STATE LM_NEW, LM_STATE);
    gr_state_save(run->gpt, run->adamw, run->at, lm_path(run->ctx, path, run->set->out, LM_STATE LM_NEW));
    gr_context_reset(run->ctx);
    if (model) put_in_place(run, LM_MODEL LM_NEW, LM_MODEL);
    put_in_place(run, LM_LAST LM_NEW, LM_LAST);
    put_in_place(run, LM_STATE LM_NEW, LM_STATE);
    flush_directory(run);
    if (gr_ok(run->ctx)) run->saved = run->at.step;
}

void lm_run_end(lm_run *run) {
    if (run->log) {
        flush_log(run);
        if (fclose(run->log) != 0) fail_log(run);
    }
    free(run->picture);
}
