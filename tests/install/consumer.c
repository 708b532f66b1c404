/* A user's program, in C and in C++17: fits y = 3 x + 1 with the installed library, demands that the loss falls, and
 * prints the version, the precision and the last loss to the bit. */
#include <gradus.h>

#include <string.h>

enum { POINTS = 16, STEPS = 100 };

int main(void) {
    gr_context *ctx = gr_context_new();
    gr_rng rng = gr_rng_seed(1337);
    gr_tensor *x = gr_keep(gr_normal(ctx, GR_SHAPE(POINTS, 1), 0, 1, &rng));
    gr_tensor *y = gr_keep(gr_add_scalar(gr_scale(x, 3), 1));
    gr_linear_config sizes = {1, 1, true, 0};
    gr_linear_layer line = gr_linear_new(ctx, "line", sizes, &rng);
    gr_adamw_config config;
    memset(&config, 0, sizeof config);
    gr_adamw *adamw = gr_adamw_new(ctx, config);
    gr_cosine_config rate = {0.2, 0.01, 5, STEPS};

    double first = 0, last = 0;
    for (int step = 0; step < STEPS; step++) {
        gr_tensor *loss = gr_mse(gr_linear_forward(&line, x), y);
        if (!gr_backward(loss)) break;
        last = gr_item(loss);
        if (step == 0) first = last;
        gr_adamw_step(adamw, gr_cosine(step, rate));
        gr_zero_grad(ctx);
        gr_context_reset(ctx);
    }
    printf("%s %s %a\n", gr_version(), sizeof(gr_real) == sizeof(double) ? "double" : "float", last);
    const int status = gr_context_report(ctx);
    gr_context_free(ctx);
    if (strcmp(gr_version(), GR_VERSION) != 0) return 2;
    return status == 0 && last < first / 100 ? 0 : 1;
}
