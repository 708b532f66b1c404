/* Work in which, run after run, another call fails, until none is left to fail. */
#ifndef TESTS_FAULTS_SUPPORT_H
#define TESTS_FAULTS_SUPPORT_H

#include "faults.h"
#include "hash.h"
#include "nn_support.h"

#include <stdio.h>

enum { TRIAL_IDS = 12, TRIAL_LAYERS = 1, TRIAL_VOCAB = 7, TRIAL_CONTEXT = 8 };

/* What a piece of work has at hand; it fills in what it makes, and mixes what comes of it into bits. */
typedef struct work work;
typedef struct trial {
    const work *work;
    gr_context *c;
    gr_gpt *gpt;
    gr_adamw *adamw;
    gr_corpus *corpus;
    gr_tokenizer letters;
    gr_rng rng;
    int32_t ids[TRIAL_IDS];
    FILE *out; /* empty */
    uint64_t bits;
} trial;

struct work {
    const char *name;
    void (*begin)(trial *t), (*run)(trial *t); /* run may be repeated after an error */
    gr_attention_style style;                  /* of the model */
    gr_positions positions;
    int least;  /* faults that can come, at least: of gr_arena_alloc, or of the files */
    int closes; /* that must not fail unseen */
    int keeps;  /* files that it leaves open, for the context to close */
    const void *arg;
};

typedef struct outcome {
    int faults, errors; /* that came; of them, those that the context told of */
} outcome;

/* Fails call f.at, f.at + 1 ... of the work (0: every call), until it ends before the call comes, and looks each time:
 * there is an error that says all the words, or everything is as after a run without a fault; after an error
 * parameters, moments, files and descriptors are as they were (a file may be the new one), and the work, done again,
 * has the bits of a run without a fault. With FAULT_COUNTS in the environment it prints how many came. */
outcome every_fault(const work *w, failure f, const char *const words[2]);

/* A file of the test's own directory, which ends with the process. */
const char *trial_path(const char *name);
void trial_file(const char *name, const char *text);

void mix_text(trial *t); /* what t->out holds */

/* Begin: a context, and in it a small model that learns, with its optimiser and a text. */
void begin_context(trial *t);
void begin_model(trial *t);

/* One step of it, as far as the loss; then to its end. */
gr_tensor *trial_loss(trial *t);
void trial_step(trial *t);

#endif
