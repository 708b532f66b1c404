#include "text.h"
#include "files.h"

#include "../tensor/scalar.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct gr_corpus {
    gr_context *ctx;
    const char *name;    /* for messages: the path */
    const uint8_t *text; /* NULL: not opened */
    size_t size;
    gr_tokenizer tokenizer;
};

/* -- Opening ------------------------------------------------------------------------------------------------------- */

/* A corpus without text; the constant one when there is no memory for it. */
static gr_corpus *new_corpus(gr_context *ctx, const char *name) {
    static const gr_corpus nothing = {.name = "corpus"};
    const size_t length = strlen(name) + 1;
    gr_corpus *corpus = gr_alloc(ctx, true, sizeof *corpus);
    char *copy = gr_alloc(ctx, true, length);
    if (!corpus || !copy) return (gr_corpus *)&nothing;
    memcpy(copy, name, length);
    *corpus = (gr_corpus){.ctx = ctx, .name = copy, .tokenizer = gr_tokenizer_chars(NULL, 0)};
    return corpus;
}

static void set_text(gr_corpus *corpus, const uint8_t *text, size_t size, gr_vocab_kind kind) {
    corpus->text = text;
    corpus->size = size;
    corpus->tokenizer = kind == GR_BYTES ? gr_tokenizer_bytes() : gr_tokenizer_chars(text, size);
}

static void unmap(void *arg) {
    gr_corpus *corpus = arg;
    munmap((void *)(uintptr_t)corpus->text, corpus->size);
    corpus->text = NULL;
}

/* The bytes of a file that cannot be mapped; fewer than size if it has shrunk since. */
static size_t read_all(gr_corpus *corpus, int file, uint8_t *out, size_t size) {
    size_t have = 0;
    while (have < size) {
        ssize_t n = read(file, out + have, size - have);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) gr_fail_errno(corpus->ctx, corpus->name, "read");
        if (n <= 0) break;
        have += (size_t)n;
    }
    return have;
}

static void load(gr_corpus *corpus, int file, size_t size, gr_vocab_kind kind) {
    void *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (map != MAP_FAILED) {
        set_text(corpus, map, size, kind);
        gr_on_free(corpus->ctx, unmap, corpus);
        return;
    }
    uint8_t *copy = gr_alloc(corpus->ctx, true, size);
    const size_t have = copy ? read_all(corpus, file, copy, size) : 0;
    if (have == 0) gr_fail(corpus->ctx, corpus->name, "empty");
    if (gr_ok(corpus->ctx)) set_text(corpus, copy, have, kind);
}

gr_corpus *gr_corpus_open(gr_context *ctx, const char *path, gr_vocab_kind kind) {
    gr_corpus *corpus = new_corpus(ctx, path ? path : "corpus");
    if (!path) gr_fail(ctx, "corpus", "path is NULL");
    if (!path || !corpus->ctx) return corpus;
    uint64_t size = 0;
    const int file = gr_open_regular(ctx, corpus->name, &size);
    if (file >= 0 && size == 0)
        gr_fail(ctx, corpus->name, "empty");
    else if (size > SIZE_MAX / 2)
        gr_fail(ctx, corpus->name, "too large for this machine");
    else if (file >= 0)
        load(corpus, file, (size_t)size, kind);
    if (file >= 0) close(file);
    return corpus;
}

gr_corpus *gr_corpus_from(gr_context *ctx, const uint8_t *text, size_t size, gr_vocab_kind kind) {
    gr_corpus *corpus = new_corpus(ctx, "corpus");
    if (!corpus->ctx) return corpus;
    if (!text || size == 0) gr_fail(ctx, corpus->name, "empty");
    uint8_t *copy = gr_alloc(ctx, true, size);
    if (!copy) return corpus;
    memcpy(copy, text, size);
    set_text(corpus, copy, size, kind);
    return corpus;
}

/* -- What it is ---------------------------------------------------------------------------------------------------- */

static size_t train_size(const gr_corpus *corpus) { return corpus->size - corpus->size / 10; }

int64_t gr_corpus_vocab(const gr_corpus *corpus) { return corpus ? corpus->tokenizer.size : 0; }

size_t gr_corpus_size(const gr_corpus *corpus, gr_part part) {
    if (!corpus || !corpus->text) return 0;
    return part == GR_VALIDATION ? corpus->size - train_size(corpus) : train_size(corpus);
}

const uint8_t *gr_corpus_bytes(const gr_corpus *corpus, gr_part part) {
    if (!corpus || !corpus->text) return NULL;
    return part == GR_VALIDATION ? corpus->text + train_size(corpus) : corpus->text;
}

const gr_tokenizer *gr_corpus_tokenizer(const gr_corpus *corpus) {
    static const gr_tokenizer none = {.size = 0};
    return corpus ? &corpus->tokenizer : &none;
}

/* -- Batches ------------------------------------------------------------------------------------------------------- */

static const char *part_name(gr_part part) { return part == GR_VALIDATION ? "validation" : "training"; }

/* Is there text in which a window of this length has a place? */
static bool window_fits(const gr_corpus *corpus, gr_part part, int64_t time) {
    const size_t size = gr_corpus_size(corpus, part);
    if (!corpus || !gr_ok(corpus->ctx)) return false;
    if (!corpus->text)
        gr_fail(corpus->ctx, corpus->name, "was not opened, after an error that has been cleared since");
    else if (time < 1)
        gr_fail(corpus->ctx, corpus->name, "a window of %lld tokens", (long long)time);
    else if ((uint64_t)time >= size)
        gr_fail(corpus->ctx, corpus->name, "the %s part has %zu bytes, a window needs %llu", part_name(part), size,
                (unsigned long long)time + 1);
    return gr_ok(corpus->ctx);
}

static void encode(const gr_tokenizer *tokenizer, const uint8_t *text, int64_t n, int32_t *out) {
    for (int64_t i = 0; i < n; i++) out[i] = tokenizer->id[text[i]];
}

gr_batch gr_corpus_batch(gr_corpus *corpus, gr_part part, gr_rng *rng, int64_t batch, int64_t time) {
    const gr_batch none = {{NULL, 0, 0}, {NULL, 0, 0}};
    if (corpus && !rng) gr_fail(corpus->ctx, corpus->name, "rng is NULL");
    if (!window_fits(corpus, part, time)) return none;
    if (batch < 1 || (uint64_t)batch > SIZE_MAX / 2 / sizeof(int32_t) / (uint64_t)time) {
        gr_fail(corpus->ctx, corpus->name, "a batch of %lld windows of %lld tokens", (long long)batch, (long long)time);
        return none;
    }
    const size_t bytes = (size_t)batch * (size_t)time * sizeof(int32_t);
    int32_t *inputs = gr_alloc(corpus->ctx, false, bytes), *targets = gr_alloc(corpus->ctx, false, bytes);
    if (!inputs || !targets) return none;
    const size_t places = gr_corpus_size(corpus, part) - (size_t)time;
    for (int64_t b = 0; b < batch; b++) {
        const uint8_t *window = gr_corpus_bytes(corpus, part) + gr_rng_below(rng, places);
        encode(&corpus->tokenizer, window, time, inputs + b * time);
        encode(&corpus->tokenizer, window + 1, time, targets + b * time);
    }
    return (gr_batch){{inputs, batch, time}, {targets, batch, time}};
}

/* -- The bigram model ---------------------------------------------------------------------------------------------- */

enum { BYTES = 256 };

/* count[BYTES a + b]: how often byte b follows byte a. By byte, which is in range whatever becomes of a mapped file. */
static int64_t *count_pairs(gr_corpus *corpus, gr_part part) {
    const size_t size = gr_corpus_size(corpus, part);
    const uint8_t *text = gr_corpus_bytes(corpus, part);
    int64_t *count = gr_alloc(corpus->ctx, false, BYTES * BYTES * sizeof *count);
    if (!count) return NULL;
    memset(count, 0, BYTES * BYTES * sizeof *count);
    for (size_t i = 0; i + 1 < size; i++) count[BYTES * text[i] + text[i + 1]]++;
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
