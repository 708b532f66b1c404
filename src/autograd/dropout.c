/* Dropout (Srivastava et al., 2014), scaled while training so that nothing need be scaled later. Which elements stay is
 * a function of a key and of their index; backward makes the same choice again and stores nothing. */
#include "dropout.h"
#include "tape.h"

#include "../tensor/parallel.h"

enum { WORDS = 4 }; /* Philox gives four words at a time */

/* Element i stays when word i % 4 of counter i / 4, as a number in [0, 1), is p or more. */
void gr_keep_elements(gr_dropout_key kept, size_t first, size_t n, const gr_real *x, gr_real *y, bool accumulate) {
    const gr_real scale = (gr_real)(1 / (1 - kept.p));
    uint32_t word[WORDS] = {0};
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || (first + i) % WORDS == 0) gr_philox(kept.key, GR_STREAM_DROPOUT, (first + i) / WORDS, word);
        gr_real value = (double)word[(first + i) % WORDS] * 0x1p-32 >= kept.p ? x[i] * scale : 0;
        y[i] = accumulate ? y[i] + value : value;
    }
}

typedef struct dropout_task {
    gr_dropout_key kept;
    const gr_real *x;
    gr_real *y;
    bool accumulate;
} dropout_task;

static void drop_elements(size_t begin, size_t end, int thread, void *arg) {
    (void)thread;
    const dropout_task *t = arg;
    gr_keep_elements(t->kept, begin, end - begin, t->x + begin, t->y + begin, t->accumulate);
}

static void dropout_backward(gr_node *n) {
    gr_tensor *dx = gr_wanted_gradient(n, 0);
    if (gr_is_inert(dx)) return;
    dropout_task t = {*(const gr_dropout_key *)n->saved, n->out->grad->data, dx->data, true};
    gr_parallel_for((size_t)gr_numel(dx), GR_COST_OF_EXP, drop_elements, &t);
}

const gr_op gr_op_dropout = {.name = "dropout", .operands = 1, .label = {"x"}, .backward = dropout_backward};

gr_tensor *gr_dropout(gr_tensor *x, double p, gr_rng *rng) {
    gr_tensor *bad = gr_check(&gr_op_dropout, 1, &x);
    if (bad) return bad;
    if (!rng) return gr_refuse(&gr_op_dropout, 1, &x, "rng is NULL");
    if (!(p >= 0 && p < 1)) return gr_refuse(&gr_op_dropout, 1, &x, "p is %g; it must be in [0, 1)", p);
    gr_dropout_key k = {gr_rng_next(rng), p};
    gr_tensor *y = gr_new(x->ctx, "dropout", false, x->shape), *from = gr_contiguous(x);
    if (gr_is_inert(y) || gr_is_inert(from)) return gr_inert(x->ctx);
    dropout_task t = {k, from->data, y->data, false};
    gr_parallel_for((size_t)gr_numel(y), GR_COST_OF_EXP, drop_elements, &t);
    return gr_record(&gr_op_dropout, y, 1, &x, &k, sizeof k);
}
