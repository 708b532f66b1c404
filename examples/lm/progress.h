/* How a training goes, on standard error: a bar that is drawn again and again on a terminal, lines elsewhere. */
#ifndef LM_PROGRESS_H
#define LM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* One step, as the log has it. */
typedef struct lm_record {
    int64_t step; /* steps done */
    double loss, validation /* NaN: not measured */, lr, norm, tokens_per_second;
} lm_record;

typedef struct lm_progress {
    int64_t first, total;        /* steps: done before this run began, in all */
    bool quiet, terminal, drawn; /* drawn: the bar is on the screen */
    double begun, shown;         /* times */
    double loss, speed, weight;  /* running means, not yet divided by the sum of their weights */
    double validation;           /* the last one */
} lm_progress;

double lm_now(void); /* seconds, from some moment on */

void lm_progress_begin(lm_progress *p, int64_t first, int64_t total, bool quiet);
void lm_progress_step(lm_progress *p, const lm_record *record);
void lm_progress_end(lm_progress *p); /* leaves the bar on its line */

#endif
