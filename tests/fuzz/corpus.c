/* Text as ids, from any bytes: the vocabulary, the parts, the windows of a batch, the bigram loss, each against its
 * definition; the same text from memory, and cut into files with a vocabulary of its own. */
#include "fuzz.h"

#include <math.h>

enum { MOST = 1 << 14 }; /* bytes of a text */

typedef struct text {
    gr_corpus *corpus;
    fuzz_bytes part[3]; /* by gr_part: what must be in it */
} text;

static gr_context *ctx;

static fuzz_bytes all_of(text t) { return t.part[GR_WHOLE]; }

/* -- The vocabulary ------------------------------------------------------------------------------------------------ */

static void check_vocabulary(text t, bool all, fuzz_bytes more) {
    static int32_t ids[MOST];
    const gr_tokenizer *v = gr_corpus_tokenizer(t.corpus);
    const size_t size = fuzz_left(&t.part[GR_WHOLE]);
    bool member[256] = {false};
    int count = 0;
    for (const uint8_t *at = all_of(t).at; at < all_of(t).end; at++) member[*at] = true;
    for (const uint8_t *at = more.at; at < more.end; at++) member[*at] = true;
    for (int byte = 0; byte < 256; byte++) {
        const bool known = all || member[byte];
        DEMAND(v->id[byte] == (known ? count : -1));
        if (known) DEMAND(v->byte[count++] == byte);
    }
    DEMAND(v->size == count && gr_corpus_vocab(t.corpus) == count);
    DEMAND(gr_encode(ctx, v, all_of(t).at, size, ids));
    for (size_t i = 0; i < size; i++) DEMAND(ids[i] >= 0 && ids[i] < count && v->byte[ids[i]] == all_of(t).at[i]);
}

/* -- Parts and windows --------------------------------------------------------------------------------------------- */

static void check_reading(text t, gr_part part, fuzz_bytes *in) {
    static uint8_t out[MOST];
    const size_t size = fuzz_left(&t.part[part]);
    DEMAND(gr_corpus_size(t.corpus, part) == size);
    const size_t from = (size_t)fuzz_below(in, (int64_t)size + 2), n = (size_t)fuzz_below(in, (int64_t)size + 2);
    if (from > size || n > size - from) {
        DEMAND(!gr_corpus_read(t.corpus, part, from, n, out));
        fuzz_expect_error(ctx);
        return;
    }
    DEMAND(gr_corpus_read(t.corpus, part, from, n, out));
    DEMAND(n == 0 || memcmp(out, t.part[part].at + from, n) == 0);
}

/* Is it a stretch of the part? */
static bool occurs(fuzz_bytes part, const uint8_t *window, size_t n) {
    for (const uint8_t *at = part.at; (size_t)(part.end - at) >= n; at++)
        if (memcmp(at, window, n) == 0) return true;
    return false;
}

static void check_row(text t, gr_part part, const int32_t *inputs, const int32_t *targets, int64_t time) {
    static uint8_t window[MOST + 1];
    const gr_tokenizer *v = gr_corpus_tokenizer(t.corpus);
    for (int64_t i = 0; i < time; i++) {
        DEMAND(inputs[i] >= 0 && inputs[i] < v->size && targets[i] >= 0 && targets[i] < v->size);
        DEMAND(i + 1 == time || targets[i] == inputs[i + 1]);
        window[i] = v->byte[inputs[i]];
    }
    window[time] = v->byte[targets[time - 1]];
    DEMAND(occurs(t.part[part], window, (size_t)time + 1));
}

static void check_batch(text t, gr_part part, fuzz_bytes *in) {
    const int64_t size = (int64_t)fuzz_left(&t.part[part]), batch = fuzz_below(in, 5), time = fuzz_below(in, size + 2);
    const gr_rng before = gr_rng_seed(fuzz_byte(in));
    gr_rng rng = before;
    const gr_batch b = gr_corpus_batch(t.corpus, part, &rng, batch, time);
    if (batch < 1 || time < 1 || time >= size) {
        DEMAND(!b.inputs.ids && !b.targets.ids && b.inputs.batch == 0 && b.inputs.time == 0);
        DEMAND(memcmp(&rng, &before, sizeof rng) == 0);
        fuzz_expect_error(ctx);
        return;
    }
    DEMAND(gr_ok(ctx) && b.inputs.batch == batch && b.targets.batch == batch);
    DEMAND(b.inputs.time == time && b.targets.time == time);
    for (int64_t i = 0; i < batch; i++) check_row(t, part, b.inputs.ids + i * time, b.targets.ids + i * time, time);
}

/* The mean of -ln((count(a b) + 1) / (count(a) + V)) over the pairs a b of a part, counts of the training part. */
static void check_bigram_loss(text t, gr_part part) {
    static int64_t pair[256][256], row[256];
    const fuzz_bytes train = t.part[GR_TRAIN], seen = t.part[part];
    const double found = gr_corpus_bigram_loss(t.corpus, part);
    double wanted = 0;
    if (fuzz_left(&train) < 2 || fuzz_left(&seen) < 2) {
        DEMAND(isnan(found));
        fuzz_expect_error(ctx);
        return;
    }
    memset(pair, 0, sizeof pair), memset(row, 0, sizeof row);
    for (const uint8_t *at = train.at; at + 1 < train.end; at++) pair[at[0]][at[1]]++, row[at[0]]++;
    for (const uint8_t *at = seen.at; at + 1 < seen.end; at++)
        wanted -= log((double)(pair[at[0]][at[1]] + 1) / (double)(row[at[0]] + gr_corpus_vocab(t.corpus)));
    wanted /= (double)(fuzz_left(&seen) - 1);
    DEMAND(fabs(found - wanted) <= 1e-9 * (1 + wanted));
}

static void check_parts(text t, fuzz_bytes *in) {
    for (int part = GR_TRAIN; part <= GR_WHOLE; part++) {
        check_reading(t, (gr_part)part, in);
        for (int i = 0; i < 3; i++) check_batch(t, (gr_part)part, in);
        check_bigram_loss(t, (gr_part)part);
    }
}

/* -- Ways to open it ----------------------------------------------------------------------------------------------- */

/* The last bytes of a text are for validation. */
static text cut(gr_corpus *corpus, fuzz_bytes all, size_t last) {
    return (text){corpus, {{all.at, all.end - last}, {all.end - last, all.end}, all}};
}

static void from_memory(fuzz_bytes all, gr_vocab_kind kind, fuzz_bytes *in) {
    gr_corpus *corpus = gr_corpus_from(ctx, all.at, fuzz_left(&all), kind);
    if (fuzz_left(&all) == 0) {
        DEMAND(gr_corpus_vocab(corpus) == 0 && gr_corpus_size(corpus, GR_WHOLE) == 0);
        fuzz_expect_error(ctx);
        return;
    }
    const text t = cut(corpus, all, fuzz_left(&all) / 10);
    DEMAND(gr_ok(ctx));
    check_vocabulary(t, kind == GR_BYTES, t.part[GR_WHOLE]);
    check_parts(t, in);
}

enum { FILES = 3, VALIDATION = 3 };

/* All must be in the vocabulary that is given. */
static bool all_known(const gr_tokenizer *v, fuzz_bytes some) {
    for (; some.at < some.end; some.at++)
        if (v->id[*some.at] < 0) return false;
    return true;
}

static void from_files(fuzz_bytes all, fuzz_bytes apart, gr_vocab_kind kind, fuzz_bytes *in) {
    const char *path[FILES];
    const double share[] = {0, 0.25, 0.5, 0.999};
    const gr_tokenizer foreign = gr_tokenizer_chars(in->at, (size_t)fuzz_below(in, (int64_t)fuzz_left(in) + 1) / 2);
    const int choice = (int)fuzz_below(in, 6);
    const bool own = choice >= 2, given = foreign.size > 0 && choice % 2 == 1;
    gr_corpus_config config = {.kind = kind, .validation = share[fuzz_below(in, 4)]};
    const size_t size = fuzz_left(&all);
    const fuzz_bytes whole = all;
    for (int i = 0; i < FILES; i++) {
        const fuzz_bytes piece = fuzz_rest(&all, i + 1 < FILES ? (size_t)fuzz_below(in, (int64_t)size + 1) : size);
        fuzz_write(path[i] = fuzz_path(i), piece.at, fuzz_left(&piece));
    }
    fuzz_write(fuzz_path(VALIDATION), apart.at, fuzz_left(&apart));
    if (own) config.validation_path = fuzz_path(VALIDATION);
    if (given) config.tokenizer = &foreign;
    gr_corpus *corpus = gr_corpus_new(ctx, path, FILES, config);
    const bool sound = size > 0 && (!own || fuzz_left(&apart) > 0);
    if (!sound || (given && !(all_known(&foreign, whole) && (!own || all_known(&foreign, apart))))) {
        DEMAND(gr_corpus_size(corpus, GR_WHOLE) == 0 && gr_corpus_vocab(corpus) == 0);
        fuzz_expect_error(ctx);
        return;
    }
    DEMAND_SAYING(gr_ok(ctx), "%s", gr_error_message(ctx));
    const double part = config.validation > 0 ? config.validation * (double)size : (double)(size / 10);
    text t = cut(corpus, whole, own ? 0 : (size_t)part);
    if (own) t.part[GR_VALIDATION] = apart;
    if (!given) check_vocabulary(t, kind == GR_BYTES, own ? apart : whole);
    check_parts(t, in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { CHOICES = 48 }; /* bytes at the end of an input that are drawn from; the text is before them */
    fuzz_bytes in = {data, data + size};
    fuzz_bytes all = fuzz_rest(&in, size > CHOICES ? size - CHOICES : size / 2);
    if (fuzz_left(&all) > MOST) all.end = all.at + MOST;
    const int how = fuzz_byte(&in);
    const gr_vocab_kind kind = how & 1 ? GR_BYTES : GR_CHARS;
    ctx = fuzz_context(0);
    if (how & 2) {
        const fuzz_bytes apart = fuzz_rest(&all, (size_t)how);
        from_files(all, apart, kind, &in);
    } else {
        from_memory(all, kind, &in);
    }
    return 0;
}
