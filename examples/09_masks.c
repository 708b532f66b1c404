/* Lesson 9, third part: what seven masks let a query see. */
#include <gradus.h>

#include "plot.h"

enum { MASKS = 7, DRAWN = 32, PRINTED = 16, IN_A_ROW = 4, SEED = 3 };
typedef struct named_mask {
    char name[32];
    gr_mask mask;
} named_mask;

/* For n a multiple of 16. */
static void make_masks(gr_context *ctx, int n, named_mask *all) {
    const int wide = n / 4, global = n / 16, length = n * 11 / 16;
    gr_rng rng = gr_rng_seed(SEED);
    const gr_mask causal = gr_mask_causal(), near = gr_mask_window(global + 1);
    gr_tensor *strided = gr_layout_strided(ctx, n, wide), *fixed = gr_layout_fixed(ctx, n, wide);
    gr_tensor *bigbird = gr_layout_bigbird(ctx, (gr_bigbird_config){n / 2, 3, 1, 2, &rng}); /* blocks of 2 */
    all[0] = (named_mask){"causal", causal};
    all[1] = (named_mask){"", gr_mask_and(causal, gr_mask_window(wide))};
    all[2] = (named_mask){"window and global", gr_mask_or(near, gr_mask_global(global))};
    all[3] = (named_mask){"strided", gr_mask_and(causal, gr_mask_blocks(strided, 1))};
    all[4] = (named_mask){"fixed", gr_mask_and(causal, gr_mask_blocks(fixed, 1))};
    all[5] = (named_mask){"BigBird", gr_mask_blocks(bigbird, 2)};
    all[6] = (named_mask){"padding", gr_mask_padding(gr_full(ctx, GR_SHAPE(1), length))};
    snprintf(all[1].name, sizeof all->name, "causal, window %d", wide);
}

/* cell[i * n + j] = 1 where query i sees key j; returns the share seen. */
static double draw(gr_context *ctx, gr_mask mask, int n, gr_real *cell) {
    double seen = 0;
    if (!gr_to_array(gr_mask_matrix(ctx, mask, GR_SHAPE(n, n)), cell)) return 0;
    for (int i = 0; i < n * n; i++) seen += (double)cell[i];
    return seen / (n * n);
}

/* gr_mask_print draws one; here they stand side by side. */
static void print_masks(gr_context *ctx) {
    static gr_real cell[MASKS][PRINTED * PRINTED];
    named_mask all[MASKS];
    make_masks(ctx, PRINTED, all);
    for (int m = 0; m < MASKS; m++) draw(ctx, all[m].mask, PRINTED, cell[m]);
    printf("a row: a query; a column: a key; # where it may look\n");
    for (int first = 0; first < MASKS; first += IN_A_ROW) {
        const int next = first + IN_A_ROW < MASKS ? first + IN_A_ROW : MASKS;
        for (int m = first; m < next; m++) printf(m < next - 1 ? "%-20s" : "%s\n", all[m].name);
        for (int i = 0; i < PRINTED; i++)
            for (int m = first; m < next; m++) {
                for (int j = 0; j < PRINTED; j++) putchar(cell[m][i * PRINTED + j] != 0 ? '#' : '.');
                printf(m < next - 1 ? "    " : "\n");
            }
    }
}

static void write_script(FILE *out, const named_mask *all, const double *share) {
    fprintf(out,
            "set palette defined (0 '#eef3f8', 1 '#0072b2')\nset cbrange [0:1]\nunset colorbox\nunset key\n"
            "unset tics\nunset grid\nset border 15 lc rgb '#a0a0a0'\nset size ratio 1\n"
            "set xrange [-0.5:%d.5]\nset yrange [%d.5:-0.5] # the first query on top\n"
            "set multiplot layout 2,4 margins 0.02,0.98,0.06,0.94 spacing 0.025,0.14\n",
            DRAWN - 1, DRAWN - 1);
    for (int m = 0; m < MASKS; m++)
        fprintf(out,
                "set title '%s' font 'sans,15' offset 0,-0.5\nset xlabel '%.0f %% of the pairs seen' offset 0,0.3\n"
                "plot data index %d matrix with image pixels\n",
                all[m].name, 100 * share[m], m);
    fprintf(out, "unset title\nunset xlabel\nunset border\n"
                 "set label 1 'a row: a query' at 0,6\nset label 2 'a column: a key' at 0,10\n"
                 "set label 3 'it may look' at 4,16\nset label 4 'it may not' at 4,20\n"
                 "set object 1 rectangle from 0,15 to 2.5,17 fs solid fc rgb '#0072b2'\n"
                 "set object 2 rectangle from 0,19 to 2.5,21 fs solid fc rgb '#eef3f8'\n"
                 "plot NaN\nunset multiplot\n");
}

int main(int argc, char **argv) {
    static gr_real cell[DRAWN * DRAWN];
    gr_context *ctx = gr_context_new();
    named_mask all[MASKS];
    double share[MASKS];
    plot p;
    const bool drawing = plot_open(&p, argc, argv, "09_masks.png", 1000, 590);
    print_masks(ctx);
    make_masks(ctx, DRAWN, all);
    printf("of %d x %d pairs seen:", DRAWN, DRAWN);
    for (int m = 0; m < MASKS; m++) {
        share[m] = draw(ctx, all[m].mask, DRAWN, cell);
        printf("%s %s %.0f %%", m ? "," : "", all[m].name, 100 * share[m]);
        for (int i = 0; drawing && i < DRAWN * DRAWN; i++)
            fprintf(p.data, "%d%s", cell[i] != 0, i % DRAWN < DRAWN - 1 ? "\t" : "\n");
        if (drawing) fprintf(p.data, "\n\n");
    }
    printf("\n");
    if (drawing) write_script(p.script, all, share);
    const bool drawn = !drawing || plot_close(&p);
    const int status = gr_context_report(ctx) != 0 || !drawn;
    gr_context_free(ctx);
    return status;
}
