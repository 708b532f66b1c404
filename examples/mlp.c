/* A network of your own: two linear layers learn a sine from 200 points. What is used in every step, data too, is kept.
 */
#include <gradus.h>

#include <math.h>

enum { POINTS = 200, WIDTH = 32, STEPS = 1001 };

int main(void) {
    gr_context *ctx = gr_context_new();
    gr_rng rng = gr_rng_seed(1);
    gr_linear_layer hidden = gr_linear_new(ctx, "hidden", (gr_linear_config){1, WIDTH, .bias = true}, &rng);
    gr_linear_layer out = gr_linear_new(ctx, "out", (gr_linear_config){WIDTH, 1, .bias = true}, &rng);
    gr_adamw *adamw = gr_adamw_new(ctx, (gr_adamw_config){0});

    gr_real at[POINTS], value[POINTS];
    for (int i = 0; i < POINTS; i++) {
        at[i] = (gr_real)(6.0 * i / POINTS - 3);
        value[i] = (gr_real)sin((double)at[i]);
    }
    gr_tensor *x = gr_keep(gr_from(ctx, GR_SHAPE(POINTS, 1), at)); /* outlive gr_context_reset */
    gr_tensor *target = gr_keep(gr_from(ctx, GR_SHAPE(POINTS, 1), value));

    for (int step = 0; step < STEPS; step++) {
        gr_tensor *y = gr_linear_forward(&out, gr_tanh(gr_linear_forward(&hidden, x))); /* (POINTS, 1) */
        gr_tensor *loss = gr_mse(y, target);
        if (!gr_backward(loss)) break;
        if (step % 250 == 0) printf("step %4d  loss %.6f\n", step, gr_item(loss));
        gr_adamw_step(adamw, 0.01);
        gr_zero_grad(ctx);
        gr_context_reset(ctx); /* ends the step: y and loss are gone */
    }
    int status = gr_context_report(ctx);
    gr_context_free(ctx);
    return status;
}
