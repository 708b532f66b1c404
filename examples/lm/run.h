/* A run of lm train: what it learns from and with, and the files it leaves in its directory. */
#ifndef LM_RUN_H
#define LM_RUN_H

#include "lm.h"
#include "progress.h"

typedef struct lm_run {
    const lm_settings *set;
    gr_context *ctx;
    gr_corpus *corpus;
    gr_gpt *gpt;
    gr_adamw *adamw;
    gr_resume at;         /* steps done, the generator of windows, the best validation loss */
    int64_t saved;        /* steps done at the last save; -1: none yet */
    struct stat replaced; /* an older run's weights, which have gone: their permissions; all 0: there were none */
    FILE *log;
    int32_t *picture; /* ids of the text in the attention picture */
    int64_t picture_count;
    lm_progress progress;
} lm_run;

/* Opens the text, makes the model, puts back what a resumed run has saved, begins the directory's files. All that can
 * be wrong is found here, before a file is written. False after an error. */
bool lm_run_begin(lm_run *run);

/* The row of a step in log.tsv. */
void lm_run_log(lm_run *run, const lm_record *record);

/* Log, weights and state as they are now: model.safetensors if these are the best so far, or there are none yet. All
 * are written before the first takes its place, in this order: a run that is killed in between goes on from its last
 * state, and writes the rest again. */
void lm_run_save(lm_run *run, bool best);

void lm_run_end(lm_run *run);

#endif
