#include "files.h"
#include "source.h"
#include "text.h"

#include "../tensor/scalar.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a part is: a stretch of a text. */
typedef struct stretch {
    const char *name; /* of the text, for messages */
    const gr_source *text;
    uint64_t begin, size;
} stretch;

struct gr_corpus {
    gr_context *ctx;
    const char *name; /* for messages: the path, and how many more there are */
    bool open;
    gr_source text, apart; /* apart: the validation file */
    stretch part[3];       /* by gr_part */
    gr_tokenizer tokenizer;
};

/* -- Opening ------------------------------------------------------------------------------------------------------- */

/* A corpus without text; the constant one when there is no memory for it. */
static gr_corpus *new_corpus(gr_context *ctx, const char *name, int more) {
    static const gr_corpus nothing = {.name = "corpus"};
    const size_t room = strlen(name) + sizeof " and 2147483647 more";
    gr_corpus *corpus = gr_alloc_handle(ctx, sizeof *corpus + room);
    if (!corpus) return (gr_corpus *)&nothing;
    char *copy = (char *)(corpus + 1);
    if (more > 0)
        snprintf(copy, room, "%s and %d more", name, more);
    else
        memcpy(copy, name, strlen(name) + 1);
    *corpus = (gr_corpus){.ctx = ctx, .name = copy, .tokenizer = gr_tokenizer_chars(NULL, 0)};
    return corpus;
}

/* Texts are read in pieces: a system call costs little against so many bytes, and they stay in the cache. */
enum { PIECE = 1 << 16 };

static size_t piece_at(const stretch *s, uint64_t at) { return s->size - at < PIECE ? (size_t)(s->size - at) : PIECE; }

/* Which bytes does it have? One that the vocabulary (NULL: any) has not is an error with its place in its file. */
static bool survey(const stretch *s, const gr_tokenizer *vocabulary, bool member[256]) {
    gr_context *ctx = s->text->ctx;
    uint8_t *piece = gr_alloc(ctx, false, PIECE);
    for (uint64_t at = 0; piece && at < s->size; at += PIECE) {
        const size_t n = piece_at(s, at);
        if (!gr_source_read(s->text, s->begin + at, n, piece)) return false;
        for (size_t i = 0; i < n; i++) {
            member[piece[i]] = true;
            if (!vocabulary || vocabulary->id[piece[i]] >= 0) continue;
            const gr_segment *file = gr_source_find(s->text, s->begin + at + i);
            gr_fail_unknown(ctx, file->name, piece[i], s->begin + at + i - file->begin, vocabulary->size);
            return false;
        }
    }
    return gr_ok(ctx);
}

static bool find_vocabulary(gr_corpus *corpus, gr_corpus_config config) {
    bool member[256] = {false};
    corpus->tokenizer = config.tokenizer ? *config.tokenizer : gr_tokenizer_bytes();
    if (config.tokenizer ? config.tokenizer->size == 256 : config.kind == GR_BYTES) return gr_ok(corpus->ctx);
    for (int i = GR_TRAIN; i <= GR_VALIDATION; i++)
        if (!survey(&corpus->part[i], config.tokenizer, member)) return false;
    if (!config.tokenizer) corpus->tokenizer = gr_tokenizer_of(member);
    return true;
}

/* Cuts the text, which has been opened, into its parts. */
static gr_corpus *finish(gr_corpus *corpus, gr_corpus_config config) {
    const uint64_t size = corpus->text.size;
    uint64_t last = size / 10; /* for validation */
    if (gr_ok(corpus->ctx) && size == 0) gr_fail(corpus->ctx, corpus->name, "empty");
    if (!(config.validation >= 0 && config.validation < 1))
        gr_fail(corpus->ctx, corpus->name, "a share of %g for validation; it must be in [0, 1)", config.validation);
    else if (config.validation > 0)
        last = (uint64_t)((double)size * config.validation);
    if (config.validation_path) last = 0;
    corpus->part[GR_WHOLE] = (stretch){corpus->name, &corpus->text, 0, size};
    corpus->part[GR_TRAIN] = (stretch){corpus->name, &corpus->text, 0, size - last};
    corpus->part[GR_VALIDATION] = (stretch){corpus->name, &corpus->text, size - last, last};
    if (config.validation_path && corpus->apart.count > 0)
        corpus->part[GR_VALIDATION] = (stretch){corpus->apart.segment->name, &corpus->apart, 0, corpus->apart.size};
    corpus->open = gr_ok(corpus->ctx) && find_vocabulary(corpus, config);
    if (!corpus->open) {
        corpus->tokenizer = gr_tokenizer_chars(NULL, 0);
        gr_source_close(&corpus->text);
        gr_source_close(&corpus->apart);
    }
    return corpus;
}

/* Standard input can be read once. */
static void check_paths(gr_context *ctx, const char *const *paths, int count, const char *validation) {
    int inputs = validation && strcmp(validation, "-") == 0;
    if (!paths || count < 1) gr_fail(ctx, "corpus", "no file");
    for (int i = 0; gr_ok(ctx) && i < count; i++) {
        if (!paths[i])
            gr_fail(ctx, "corpus", "path is NULL");
        else
            inputs += strcmp(paths[i], "-") == 0;
    }
    if (inputs > 1) gr_fail(ctx, "standard input", "is asked for %d times; it can be read once", inputs);
}

gr_corpus *gr_corpus_new(gr_context *ctx, const char *const *paths, int count, gr_corpus_config config) {
    const char *first = paths && count > 0 && paths[0] ? paths[0] : "corpus";
    gr_corpus *corpus = new_corpus(ctx, strcmp(first, "-") == 0 ? "standard input" : first, count > 1 ? count - 1 : 0);
    if (!corpus->ctx) return corpus;
    check_paths(ctx, paths, count, config.validation_path);
    if (!gr_ok(ctx)) return corpus;
    if (gr_source_open(ctx, paths, count, &corpus->text) && config.validation_path)
        gr_source_open(ctx, &config.validation_path, 1, &corpus->apart);
    return finish(corpus, config);
}

gr_corpus *gr_corpus_open(gr_context *ctx, const char *path, gr_vocab_kind kind) {
    return gr_corpus_new(ctx, &path, 1, (gr_corpus_config){.kind = kind});
}

gr_corpus *gr_corpus_from(gr_context *ctx, const uint8_t *text, size_t size, gr_vocab_kind kind) {
    gr_corpus *corpus = new_corpus(ctx, "corpus", 0);
    if (!corpus->ctx) return corpus;
    if (!text || size == 0) gr_fail(ctx, corpus->name, "empty");
    if (gr_ok(ctx)) gr_source_from(ctx, corpus->name, text, size, &corpus->text);
    return finish(corpus, (gr_corpus_config){.kind = kind});
}

/* -- What it is ---------------------------------------------------------------------------------------------------- */

static const stretch *part_of(const gr_corpus *corpus, gr_part part) {
    return &corpus->part[part == GR_VALIDATION || part == GR_WHOLE ? part : GR_TRAIN];
}

int64_t gr_corpus_vocab(const gr_corpus *corpus) { return corpus ? corpus->tokenizer.size : 0; }

size_t gr_corpus_size(const gr_corpus *corpus, gr_part part) {
    return corpus && corpus->open ? (size_t)part_of(corpus, part)->size : 0;
}

const gr_tokenizer *gr_corpus_tokenizer(const gr_corpus *corpus) {
    static const gr_tokenizer none = {.size = 0};
    return corpus ? &corpus->tokenizer : &none;
}

static const char *part_name(gr_part part) {
    return part == GR_WHOLE ? "whole text" : part == GR_VALIDATION ? "validation part" : "training part";
}

static bool is_open(const gr_corpus *corpus) {
    if (!corpus || !gr_ok(corpus->ctx)) return false;
    if (!corpus->open) gr_fail(corpus->ctx, corpus->name, "was not opened, after an error that has been cleared since");
    return corpus->open;
}

bool gr_corpus_read(gr_corpus *corpus, gr_part part, size_t offset, size_t n, uint8_t *out) {
    if (!is_open(corpus)) return false;
    const stretch *s = part_of(corpus, part);
    if (n > 0 && !out) gr_fail(corpus->ctx, s->name, "out is NULL");
    if (offset > s->size || n > s->size - offset)
        gr_fail(corpus->ctx, s->name, "%zu bytes from offset %zu of the %s, which has %llu", n, offset, part_name(part),
                (unsigned long long)s->size);
    return gr_ok(corpus->ctx) && gr_source_read(s->text, s->begin + offset, n, out);
}

/* -- Batches ------------------------------------------------------------------------------------------------------- */

/* Is there text in which a window of this length has a place? */
static bool window_fits(const gr_corpus *corpus, gr_part part, int64_t time) {
    if (!is_open(corpus)) return false;
    const stretch *s = part_of(corpus, part);
    if (time < 1)
        gr_fail(corpus->ctx, s->name, "a window of %lld tokens", (long long)time);
    else if ((uint64_t)time >= s->size)
        gr_fail(corpus->ctx, s->name, "the %s has %llu bytes, a window needs %llu", part_name(part),
                (unsigned long long)s->size, (unsigned long long)time + 1);
    return gr_ok(corpus->ctx);
}

/* The ids of a window of time + 1 bytes from `at` on, and of the one a place later. A byte without an id can only have
 * come into the file since it was opened. */
static bool read_window(gr_corpus *corpus, const stretch *s, uint64_t at, int64_t time, uint8_t *window,
                        int32_t *inputs, int32_t *targets) {
    if (!gr_source_read(s->text, s->begin + at, (size_t)time + 1, window)) return false;
    const int16_t *id = corpus->tokenizer.id;
    int missing = 0;
    for (int64_t i = 0; i <= time; i++) missing |= id[window[i]] < 0;
    for (int64_t i = 0; i < time; i++) inputs[i] = id[window[i]];
    for (int64_t i = 0; i < time; i++) targets[i] = id[window[i + 1]];
    if (missing)
        gr_fail(corpus->ctx, gr_source_find(s->text, s->begin + at)->name,
                "has changed since it was opened: a byte that is not in the vocabulary of %d", corpus->tokenizer.size);
    return gr_ok(corpus->ctx);
}

gr_batch gr_corpus_batch(gr_corpus *corpus, gr_part part, gr_rng *rng, int64_t batch, int64_t time) {
    const gr_batch none = {{NULL, 0, 0}, {NULL, 0, 0}};
    if (corpus && !rng) gr_fail(corpus->ctx, corpus->name, "rng is NULL");
    if (!window_fits(corpus, part, time) || !rng) return none;
    if (batch < 1 || (uint64_t)batch > SIZE_MAX / 2 / sizeof(int32_t) / (uint64_t)time) {
        gr_fail(corpus->ctx, corpus->name, "a batch of %lld windows of %lld tokens", (long long)batch, (long long)time);
        return none;
    }
    const stretch *s = part_of(corpus, part);
    int32_t *inputs = gr_alloc_array(corpus->ctx, false, batch * time, sizeof *inputs);
    int32_t *targets = gr_alloc_array(corpus->ctx, false, batch * time, sizeof *targets);
    uint8_t *window = gr_alloc(corpus->ctx, false, (size_t)time + 1);
    if (!inputs || !targets || !window) return none;
    gr_rng drawn = *rng;
    for (int64_t b = 0; b < batch; b++) {
        const uint64_t at = gr_rng_below(&drawn, s->size - (uint64_t)time);
        if (!read_window(corpus, s, at, time, window, inputs + b * time, targets + b * time)) return none;
    }
    *rng = drawn;
    return (gr_batch){{inputs, batch, time}, {targets, batch, time}};
}

/* -- The bigram model ---------------------------------------------------------------------------------------------- */

enum { BYTES = 256 };

/* count[BYTES a + b]: how often byte b follows byte a. By byte, which is in range whatever becomes of a file. */
static int64_t *count_pairs(gr_corpus *corpus, gr_part part) {
    const stretch *s = part_of(corpus, part);
    int64_t *count = gr_alloc(corpus->ctx, false, BYTES * BYTES * sizeof *count);
    uint8_t *piece = gr_alloc(corpus->ctx, false, PIECE);
    if (!count || !piece) return NULL;
    memset(count, 0, BYTES * BYTES * sizeof *count);
    int before = -1; /* the byte before: none */
    for (uint64_t at = 0; at < s->size; at += PIECE) {
        const size_t n = piece_at(s, at);
        if (!gr_source_read(s->text, s->begin + at, n, piece)) return NULL;
        for (size_t i = 0; i < n; before = piece[i++])
            if (before >= 0) count[BYTES * before + piece[i]]++;
    }
    return count;
}

double gr_corpus_bigram_loss(gr_corpus *corpus, gr_part part) {
    if (!window_fits(corpus, GR_TRAIN, 1) || !window_fits(corpus, part, 1)) return (double)NAN;
    const int64_t *learned = count_pairs(corpus, GR_TRAIN), *seen = count_pairs(corpus, part);
    if (!learned || !seen) return (double)NAN;
    double loss = 0;
    for (int a = 0; a < BYTES; a++, learned += BYTES, seen += BYTES) {
        int64_t row = 0;
        for (int b = 0; b < BYTES; b++) row += learned[b];
        const double log_row = gr_double_log((double)(row + corpus->tokenizer.size));
        for (int b = 0; b < BYTES; b++)
            if (seen[b] > 0) loss += (double)seen[b] * (log_row - gr_double_log((double)(learned[b] + 1)));
    }
    return loss / (double)(gr_corpus_size(corpus, part) - 1);
}
