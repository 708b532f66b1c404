/* Writing with a model: one id from logits, and a continuation. */
#ifndef GR_GENERATE_H
#define GR_GENERATE_H

#include "gpt.h"

/* One id drawn from softmax(logits / temperature), logits (V): temperature 0 is the argmax (lowest id on ties). Before
 * the draw only the top_k largest are kept (0: all), then of these the fewest that hold top_p of the probability (0 or
 * 1: all); ties go to the lower id. An id of probability 0 is never drawn. -1 after an error; a logit that is NaN or
 * +Inf is one, or none above -Inf. */
typedef struct gr_sampling {
    double temperature;
    int64_t top_k;
    double top_p;
} gr_sampling;
int64_t gr_sample(gr_tensor *logits, gr_sampling how, gr_rng *rng);

/* Continues ids[0 ... count) to ids[0 ... total), count >= 1. Each new id is drawn from the logits of a forward pass,
 * without dropout, over the ids the model remembers; keys and values are kept, so that a step costs one token. Of more
 * than `context` ids the younger half of a context is kept, and the memory grows from there. A step under way goes on;
 * what an id took of its memory is given back. False after an error. */
typedef struct gr_generation {
    int64_t total; /* ids wanted, the given ones among them */
    gr_sampling how;
    gr_rng *rng;                         /* may be NULL at temperature 0 */
    bool (*emit)(int32_t id, void *arg); /* hears of every new id, and ends the text by false; NULL: nobody does */
    void *arg;
} gr_generation;
bool gr_gpt_generate(gr_gpt *gpt, int32_t *ids, int64_t count, gr_generation g);

#endif
