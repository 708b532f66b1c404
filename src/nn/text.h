/* Text as token ids: a tokenizer, and a corpus that gives batches. Text is bytes, unsigned; every byte sequence comes
 * back as it was. */
#ifndef GR_TEXT_H
#define GR_TEXT_H

#include "../tensor/tensor.h"

/* GR_CHARS: the vocabulary is the sorted distinct bytes of the corpus. GR_BYTES: all 256. */
typedef enum gr_vocab_kind { GR_CHARS, GR_BYTES } gr_vocab_kind;

typedef struct gr_tokenizer {
    int size;          /* V */
    uint8_t byte[256]; /* of id 0 ... size - 1 */
    int16_t id[256];   /* of a byte; -1: not in the vocabulary */
} gr_tokenizer;

gr_tokenizer gr_tokenizer_chars(const uint8_t *text, size_t size);
gr_tokenizer gr_tokenizer_bytes(void);
/* Bytes to ids: out has room for size of them. False, with an error that names byte and offset, for one not in the
 * vocabulary. */
bool gr_encode(gr_context *ctx, const gr_tokenizer *tokenizer, const uint8_t *text, size_t size, int32_t *out);

/* The part of the corpus to draw from: its bytes but those for validation, or these. GR_WHOLE: both, where they are of
 * one text; a validation file of its own is no part of it. */
typedef enum gr_part { GR_TRAIN, GR_VALIDATION, GR_WHOLE } gr_part;

/* (B, T) each; targets are the inputs one place later. They live until gr_context_reset. */
typedef struct gr_batch {
    gr_tokens inputs, targets;
} gr_batch;

typedef struct gr_corpus gr_corpus;

/* Zero means: a tenth (rounded down) of the end for validation, a vocabulary made from the text. */
typedef struct gr_corpus_config {
    gr_vocab_kind kind;
    const gr_tokenizer *tokenizer; /* not NULL: this vocabulary, a model's; a byte that it has not is an error that
                                      names file, byte and offset */
    double validation;             /* share of the end for GR_VALIDATION, in (0, 1), rounded down to a byte ... */
    const char *validation_path;   /* ... or a file of its own, all of it; GR_CHARS counts its bytes in */
} gr_corpus_config;

/* The files one after the other as one text; "-" is standard input, which is read into memory at once. The others stay
 * open and are read where a window lies: they may be larger than memory. Bytes added to them later are not seen; a file
 * that has become shorter or cannot be read is an error when it is met. A file that is missing or not a regular file,
 * and a text without a byte, is an error: "tales.txt: cannot open: No such file or directory". Never NULL; closed with
 * the context. */
gr_corpus *gr_corpus_new(gr_context *ctx, const char *const *paths, int count, gr_corpus_config config);
gr_corpus *gr_corpus_open(gr_context *ctx, const char *path, gr_vocab_kind kind); /* of one file */
/* The same for text in memory, which is copied. Its name in messages is "corpus". */
gr_corpus *gr_corpus_from(gr_context *ctx, const uint8_t *text, size_t size, gr_vocab_kind kind);

/* What a corpus is; of one that could not be opened: 0, 0, a tokenizer of no byte. */
int64_t gr_corpus_vocab(const gr_corpus *corpus);
size_t gr_corpus_size(const gr_corpus *corpus, gr_part part); /* bytes */
const gr_tokenizer *gr_corpus_tokenizer(const gr_corpus *corpus);

/* Copies n bytes of a part, from offset on, to out. False after an error. */
bool gr_corpus_read(gr_corpus *corpus, gr_part part, size_t offset, size_t n, uint8_t *out);

/* B windows of T + 1 bytes from places that the generator draws, each place equally likely. A part that is shorter than
 * a window is an error: "tales.txt: the validation part has 8 bytes, a window needs 65". After an error ids is NULL and
 * B and T are 0, and the generator has not moved. */
gr_batch gr_corpus_batch(gr_corpus *corpus, gr_part part, gr_rng *rng, int64_t batch, int64_t time);

/* Loss in nats per byte that the corpus's bigram counts reach: trained on GR_TRAIN with add-one smoothing, measured on
 * part, i.e. the mean of -ln((count(a b) + 1) / (count(a) + V)) over its pairs a b. NaN after an error. */
double gr_corpus_bigram_loss(gr_corpus *corpus, gr_part part);

#endif
