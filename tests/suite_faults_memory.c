/* No memory: all calls that ask for some fail, then each of them once, of the system's and of the arena's. Nothing
 * is lost but the work, which says so and can be done again, with the same bits. */
#include "cases.h"
#include "faults_support.h"

#include <string.h>

/* -- Work ---------------------------------------------------------------------------------------------------------- */

static void nothing(trial *t) { (void)t; }

/* What a run that is repeated has already is not made again. */
static void make(trial *t) {
    if (!gr_ok(t->c)) t->c = gr_context_new();
    if (!t->gpt || !t->gpt->h) t->gpt = gr_gpt_new(t->c, (gr_gpt_config){.vocab = 5, .context = 4, .width = 4});
    t->adamw = gr_adamw_new(t->c, (gr_adamw_config){.beta1 = 0});
}

static void make_sgd(trial *t) {
    gr_sgd_step(gr_sgd_new(t->c, (gr_sgd_config){.momentum = 0.9}), 0.1);
    gr_adamw_step(gr_adam_new(t->c, (gr_adamw_config){.beta1 = 0}), 0.1);
}

static gr_tensor *some_function(gr_context *c, gr_tensor **in, void *arg) {
    (void)c, (void)arg;
    return gr_softmax(gr_matmul(in[0], gr_mul(in[1], in[2])));
}

static void check_gradients(trial *t) {
    gr_tensor *in[3];
    for (int i = 0; i < 3; i++) in[i] = gr_normal(t->c, i == 2 ? GR_SHAPE(2) : GR_SHAPE(2, 2), 0, 1, &t->rng);
    const gr_gradcheck_result r =
        gr_gradcheck(t->c, some_function, NULL, 3, in, NULL, (gr_gradcheck_config){.seed = 1});
    t->bits = hash_bytes(t->bits, &r.error, sizeof r.error);
    t->bits = hash_bytes(t->bits, &r.ok, sizeof r.ok);
}

/* In the middle of a step, which goes on as if nothing had happened. */
static void check_within_a_step(trial *t) {
    gr_tensor *loss = trial_loss(t);
    check_gradients(t);
    gr_backward(loss);
    gr_adamw_step(t->adamw, 1e-2);
    gr_zero_grad(t->c);
    gr_context_reset(t->c);
}

static void generate(trial *t) {
    t->ids[0] = 1;
    gr_gpt_generate(
        t->gpt, t->ids, 1,
        (gr_generation){.total = TRIAL_IDS, .how = {.temperature = 1, .top_k = 5, .top_p = 0.9}, .rng = &t->rng});
    t->bits = hash_bytes(t->bits, t->ids, sizeof t->ids);
}

static void explain(trial *t) {
    gr_tensor *loss = trial_loss(t);
    gr_backward(loss);
    gr_explain(loss, t->out);
    gr_graph_mermaid(loss, t->out);
    gr_fprint(t->out, gr_parameter_at(t->c, 0));
    gr_fprint(t->out, gr_named(loss, "loss"));
    mix_text(t);
}

static void profile(trial *t) {
    gr_profile_begin(t->c);
    trial_step(t);
    gr_profile_print(t->c, t->out);
}

static const work works[] = {
    {"make", nothing, make, .least = 50},
    {"sgd, adam", begin_model, make_sgd, .least = 50},
    {"step, textbook", begin_model, trial_step, .style = {.kind = GR_TEXTBOOK}, .least = 100},
    {"step, fused", begin_model, trial_step, .style = {.kind = GR_FUSED}, .least = 100},
    {"step, window", begin_model, trial_step, .style = {.kind = GR_WINDOW, .window = 3, .global = 1}, .least = 100},
    {"step, sparse", begin_model, trial_step, .style = {.kind = GR_SPARSE, .block = 1}, .least = 100},
    {"step, linear", begin_model, trial_step, .style = {.kind = GR_LINEAR}, .least = 100},
    {"step, rotary", begin_model, trial_step, .positions = GR_ROTARY, .least = 100},
    {"gradcheck", begin_context, check_gradients, .least = 100},
    {"gradcheck in a step", begin_model, check_within_a_step, .least = 200},
    {"generate", begin_model, generate, .least = 500},
    {"explain", begin_model, explain, .least = 100},
    {"profile", begin_model, profile, .least = 100},
};
enum { WORKS = sizeof works / sizeof *works };

static const char *const words[] = {"out of memory", ""};

TEST(each_allocation_fails_once) {
    const work *w = &works[_i];
    if (!faults_possible) return;
    use_threads(1); /* small work, done many times */
    const outcome arena = every_fault(w, (failure){FAULT(gr_arena_alloc), 0, FAULT_FAILS, 0}, words);
    ck_assert_msg(arena.faults >= w->least, "%s: %d faults", w->name, arena.faults);
    ck_assert_int_eq(arena.errors, arena.faults);
    const outcome system = every_fault(w, (failure){FAULT_MEMORY, 0, FAULT_FAILS, 0}, words);
    ck_assert_int_eq(system.errors, system.faults);
    ck_assert(system.faults > 0 || w->begin != nothing);
}

/* -- Every op, by its gradient cases ------------------------------------------------------------------------------- */

static void mix(trial *t, gr_tensor *x) {
    gr_tensor *rows = gr_keep(x);
    if (gr_numel(rows) > 0) t->bits = hash_bytes(t->bits, gr_data(rows), (size_t)gr_numel(rows) * sizeof(gr_real));
}

/* Forward, and backward where there is something to go back to. */
static void run_the_case(trial *t) {
    gr_tensor *x[MOST_OPERANDS], *y = result_of_case(t->c, t->work->arg, x);
    gr_backward_from(y, gr_full(t->c, gr_shape_of(y), 1));
    mix(t, y);
    for (int i = 0; i < MOST_OPERANDS && x[i]; i++)
        if (gr_ok(t->c) && x[i]->requires_grad) mix(t, gr_grad(x[i]));
}

TEST(each_allocation_of_an_op_fails_once) {
    const gradient_case *c;
    use_threads(1);
    for (int i = 0; (c = case_at(i)); i++) {
        if (c->op != gr_ops[_i]) continue;
        const work w = {.name = c->name, .begin = begin_context, .run = run_the_case, .arg = c};
        const outcome o = every_fault(&w, (failure){FAULT(gr_arena_alloc), 0, FAULT_FAILS, 0}, words);
        ck_assert(o.errors == o.faults && (o.faults > 0 || !faults_possible));
    }
}

Suite *faults_memory_suite(void) {
    Suite *suite = suite_create("faults_memory");
    add_rows(suite, "memory", each_allocation_fails_once, WORKS);
    add_rows(suite, "ops", each_allocation_of_an_op_fails_once, gr_op_count);
    return suite;
}
