/* Lesson 2: reverse mode. A tape of scalars in thirty lines, walked rightly and wrongly; then the library's tape. */
#include <gradus.h>

#include <stdio.h>

/* -- A tape of sums: entry i is entry left plus entry right, or a leaf (left < 0) -------------------------------------
 */

typedef struct entry {
    const char *name;
    int left, right;
    double gradient;
} entry;
enum { ENTRIES = 3 };
static const entry chain[ENTRIES] = {{"a", -1, -1, 0}, {"b", 0, 0, 0}, {"c", 1, 1, 0}}; /* a; b = a + a; c = b + b */

/* d(left + right)/dleft = 1, and so for right: the entry hands its gradient on as it is. */
static void hand_on(entry *tape, int i) {
    if (tape[i].left < 0) return;
    tape[tape[i].left].gradient += tape[i].gradient;
    tape[tape[i].right].gradient += tape[i].gradient;
}

static void overwrite(entry *tape, int i) { /* "=" where "+=" is due */
    if (tape[i].left < 0) return;
    tape[tape[i].left].gradient = tape[i].gradient;
    tape[tape[i].right].gradient = tape[i].gradient;
}

/* Hands on at every arrival, before the other arrivals are in. */
static void arrive(entry *tape, int i, double gradient) {
    tape[i].gradient += gradient;
    if (tape[i].left < 0) return;
    arrive(tape, tape[i].left, tape[i].gradient);
    arrive(tape, tape[i].right, tape[i].gradient);
}

static void print_gradients(const char *what, const entry *tape) {
    printf("%-34s", what);
    for (int i = ENTRIES - 1; i >= 0; i--) printf("  dc/d%s = %.0f", tape[i].name, tape[i].gradient);
    printf("\n");
}

static void begin(entry *tape, double seed) {
    for (int i = 0; i < ENTRIES; i++) tape[i] = chain[i];
    tape[ENTRIES - 1].gradient = seed; /* dc/dc */
}

static void four_walks(void) {
    entry tape[ENTRIES];
    begin(tape, 1);
    for (int i = ENTRIES - 1; i >= 0; i--) hand_on(tape, i);
    print_gradients("from the end, adding:", tape);
    begin(tape, 1);
    for (int i = 0; i < ENTRIES; i++) hand_on(tape, i);
    print_gradients("wrong: from the beginning:", tape);
    begin(tape, 0);
    arrive(tape, ENTRIES - 1, 1);
    print_gradients("wrong: handed on at every arrival:", tape);
    begin(tape, 1);
    for (int i = ENTRIES - 1; i >= 0; i--) overwrite(tape, i);
    print_gradients("wrong: = in place of +=:", tape);
}

/* -- The library's tape ----------------------------------------------------------------------------------------------
 */

static void backward_of_chain(gr_context *ctx, gr_tensor *a, const char *what) {
    gr_tensor *b = gr_add(a, a), *c = gr_add(b, b);
    gr_backward(c);
    printf("%-28s dc/da = %.0f\n", what, gr_item(gr_grad(a)));
    gr_context_reset(ctx);
}

static void what_zero_grad_clears(gr_context *ctx) {
    gr_tensor *a = gr_parameter(gr_scalar(ctx, 1), "a");
    backward_of_chain(ctx, a, "gradus:");
    backward_of_chain(ctx, a, "again, without gr_zero_grad:");
    gr_zero_grad(ctx);
    backward_of_chain(ctx, a, "again, after gr_zero_grad:");
}

static void see_the_tape(gr_context *ctx) {
    gr_rng rng = gr_rng_seed(1);
    gr_tensor *w = gr_parameter(gr_normal(ctx, GR_SHAPE(2, 3), 0, 1, &rng), "w");
    gr_tensor *bias = gr_parameter(gr_zeros(ctx, GR_SHAPE(2)), "bias");
    gr_tensor *x = gr_named(gr_normal(ctx, GR_SHAPE(4, 3), 0, 1, &rng), "x"); /* (B, in) */
    gr_tensor *product = gr_matmul(x, gr_transpose(w, 0, 1));                 /* (B, out) */
    gr_tensor *y = gr_retain_grad(gr_named(gr_add(product, bias), "y"));      /* (B, out) */
    gr_tensor *loss = gr_named(gr_mean(gr_square(y), GR_ALL), "loss");        /* () */
    gr_backward(loss);
    gr_explain(loss, stdout);
    gr_graph_mermaid(loss, stdout);
    gr_context_reset(ctx);
}

/* y = big + x, with dL/dy = 1 ... 6: what comes back to x? */
static void broadcast(gr_context *ctx, gr_shape shape, const char *name) {
    static const gr_real one_to_six[] = {1, 2, 3, 4, 5, 6};
    gr_tensor *dy = gr_from(ctx, GR_SHAPE(2, 3), one_to_six), *big = gr_zeros(ctx, GR_SHAPE(2, 3));
    gr_tensor *x = gr_requires_grad(gr_zeros(ctx, shape));
    gr_backward_from(gr_add(big, x), dy);
    gr_print(gr_named(gr_grad(x), name));
    gr_context_reset(ctx);
}

int main(void) {
    four_walks();
    gr_context *ctx = gr_context_new();
    what_zero_grad_clears(ctx);
    see_the_tape(ctx);
    broadcast(ctx, GR_SHAPE(2, 3), "x (2, 3): nothing repeated, dx = dy:");
    broadcast(ctx, GR_SHAPE(3), "x (3,): a row repeated, dx = sum over rows:");
    broadcast(ctx, GR_SHAPE(2, 1), "x (2, 1): a column repeated, dx = sum over columns:");
    broadcast(ctx, GR_SCALAR, "x (): one number repeated, dx = sum over all:");
    int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return status;
}
