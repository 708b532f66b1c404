/* A function of your own, and its gradient against difference quotients: softplus, log(1 + e^x), made of ops. */
#include <gradus.h>

static gr_tensor *softplus(gr_context *ctx, gr_tensor **inputs, void *arg) {
    (void)ctx, (void)arg;
    return gr_log(gr_add_scalar(gr_exp(inputs[0]), 1));
}

int main(void) {
    gr_context *ctx = gr_context_new();
    gr_rng rng = gr_rng_seed(1);
    gr_tensor *x = gr_named(gr_normal(ctx, GR_SHAPE(3, 4), 0, 1, &rng), "x");
    gr_gradcheck_result r = gr_gradcheck(ctx, softplus, NULL, 1, &x, NULL, (gr_gradcheck_config){0});
    printf("softplus: %s, worst error %.1e at element %lld of %s: by backward %.6f, by difference %.6f\n",
           r.ok ? "right" : "wrong", r.error, (long long)r.index, r.input_name, r.analytic, r.numeric);
    int status = gr_context_report(ctx) || !r.ok;
    gr_context_free(ctx);
    return status;
}
