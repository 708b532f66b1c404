#include "figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- Data ---------------------------------------------------------------------------------------------------------- */

static void write_data(gr_context *ctx, const char *directory, const char *name, const lm_attention *a, lm_view v) {
    static const char header[] = "layer\thead\tquery\tkey\tweight\n"; /* all counted from 1 */
    char file[64], path[LM_PATH] = "";
    snprintf(file, sizeof file, "%s.tsv", name);
    gr_replacing out = gr_replace_begin(ctx, lm_path(ctx, path, directory, file), 0);
    gr_replace_text(&out, header);
    const int64_t n = a->n;
    for (int64_t i = 0; i < v.layers * v.heads && !out.cause; i++) {
        const int64_t layer = v.layer + i / v.heads, head = v.head + i % v.heads;
        const gr_real *weight = lm_head_of(a, layer, head);
        for (int64_t at = 0; at < n * n; at++)
            gr_replace_print(&out, "%lld\t%lld\t%lld\t%lld\t%.6g\n", (long long)layer + 1, (long long)head + 1,
                             (long long)(at / n) + 1, (long long)(at % n) + 1, (double)weight[at]);
    }
    gr_replace_end(&out);
}

/* -- Script -------------------------------------------------------------------------------------------------------- */

enum { READABLE = 16 }; /* most tokens for which a weight fits into its cell as a number */

/* A label in an array of gnuplot, between single quotes: between double ones it runs what stands in backquotes. A
 * single quote itself stands between double ones, as in an array '' is none; and % is written twice, since the label of
 * a tic is a format. */
enum { QUOTED = 16 }; /* bytes of a label of 3 and its quotes, with room */
static const char *quoted(char out[QUOTED], const char *label) {
    const bool is_quote = strcmp(label, "'") == 0;
    snprintf(out, QUOTED, is_quote ? "\"%s\"" : "'%s'", strcmp(label, "%") == 0 ? "%%" : label);
    return out;
}

static void write_labels(gr_replacing *out, const char *name, const lm_attention *a) {
    gr_replace_print(out, "data = '%s.tsv'\nn = %lld\narray label[n] = [", name, (long long)a->n);
    char text[QUOTED];
    for (int64_t i = 0; i < a->n; i++) gr_replace_print(out, "%s%s", i > 0 ? ", " : "", quoted(text, a->label[i]));
    gr_replace_text(out, "]\n");
}

/* What a single head and a sheet share. */
static const char common[] =
    "down(s) = strlen(s) == 3 && s[1:1] eq 'x' ? s[2:2].\"\\n\".s[3:3] : s # \"xC3\" as narrow as a letter\n"
    "below = (sum [i = 1 : n] down(label[i]) ne label[i]) > 0 # some of them have a second line\n"
    "set palette defined (0 '#ffffff', 0.1 '#deebf7', 0.3 '#9ecae1', 0.5 '#4292c6', 0.75 '#08519c', 1 '#08306b')\n"
    "set cbrange [0:1]\n"
    "set cbtics 0.2 scale 0\n"
    "set xrange [0.5 : n + 0.5]\n"
    "set yrange [n + 0.5 : 0.5] # the first query on top\n"
    "set size ratio 1\n"
    "set border lc rgb '#808080'\n"
    "set tics textcolor rgb '#303030'\n"
    "unset key\n";

static void write_single(gr_context *ctx, const char *directory, const char *name, const lm_attention *a, lm_view v) {
    static const char body[] = "set xtics ('' 0) scale 0 font 'sans,'.size\n"
                               "set ytics ('' 0) scale 0 font 'sans,'.size\n"
                               "set for [i = 1 : n] xtics add (down(label[i]) i)\n"
                               "set for [i = 1 : n] ytics add (label[i] i)\n"
                               "set cblabel 'weight; each row sums to 1'\n"
                               "set xlabel 'Keys' offset 0, -0.6 * below\n"
                               "set ylabel 'Queries'\n"
                               "ink(w) = w > 0.45 ? 0xffffff : 0x404040\n"
                               "if (values) {\n"
                               "    do for [i = 1 : n - 1] {\n"
                               "        set arrow from i + 0.5, 0.5 to i + 0.5, n + 0.5 nohead front lc rgb '#e4e4e4'\n"
                               "        set arrow from 0.5, i + 0.5 to n + 0.5, i + 0.5 nohead front lc rgb '#e4e4e4'\n"
                               "    }\n"
                               "    plot data skip 1 using 4:3:5 with image pixels, \\\n"
                               "         data skip 1 using 4:3:($4 <= $3 ? sprintf('%.2f', $5) : ''):(ink($5)) \\\n"
                               "             with labels font 'sans,9' textcolor rgb variable\n"
                               "} else {\n"
                               "    plot data skip 1 using 4:3:5 with image pixels\n"
                               "}\n";
    const int64_t n = a->n;
    const bool values = n <= READABLE;
    lm_script script;
    lm_begin_script(&script, ctx, (lm_picture){directory, name, values ? 820 : 1100, values ? 720 : 980});
    write_labels(&script.out, name, a);
    gr_replace_print(&script.out,
                     "values = %d\nsize = '%d'\nset title 'Attention, layer %lld, head %lld' font 'sans,14'\n", values,
                     values    ? 11
                     : n <= 64 ? 8
                               : 6,
                     (long long)v.layer + 1, (long long)v.head + 1);
    gr_replace_text(&script.out, common);
    gr_replace_text(&script.out, body);
    lm_end_script(&script);
}

/* Sizes of a sheet, in pixels. */
enum { LETTER = 13, LEAST_PANEL = 150, MOST_PANEL = 460, GAP = 34, LEFT = 66, RIGHT = 100, TOP = 78, BOTTOM = 62 };

static void write_sheet(gr_context *ctx, const char *directory, const char *name, const lm_attention *a, lm_view v) {
    static const char body[] =
        "set multiplot layout rows, columns title 'Attention of every head' font 'sans,15' \\\n"
        "    margins screen left, right, bottom, top spacing screen across, down\n"
        "set colorbox vertical user origin right + 0.25 * (1 - right), 0.5 * (bottom + top) - 0.2 \\\n"
        "    size 0.15 * (1 - right), 0.4\n"
        "do for [k = 0 : rows * columns - 1] {\n"
        "    set title sprintf('layer %d, head %d', layer + k / columns, head + k % columns) offset 0, -0.6\n"
        "    unset xtics\n"
        "    unset ytics\n"
        "    unset xlabel\n"
        "    unset ylabel\n"
        "    if (k % columns == 0) {\n"
        "        set ytics ('' 0) scale 0 font 'sans,8'\n"
        "        set for [i = 1 : n] ytics add (label[i] i)\n"
        "        set ylabel 'Queries' offset 1, 0\n"
        "    }\n"
        "    if (k / columns == rows - 1) {\n"
        "        set xtics ('' 0) scale 0 font 'sans,8'\n"
        "        set for [i = 1 : n] xtics add (down(label[i]) i)\n"
        "        set xlabel 'Keys' offset 0, 0.5 - 0.7 * below\n"
        "    }\n"
        "    plot data skip 1 every ::(k * n * n)::((k + 1) * n * n - 1) using 4:3:5 with image pixels\n"
        "    unset colorbox\n"
        "}\n"
        "unset multiplot\n";
    const int64_t letters = a->n * LETTER;
    const int64_t panel = letters < LEAST_PANEL ? LEAST_PANEL : letters > MOST_PANEL ? MOST_PANEL : letters;
    const double width = (double)(LEFT + v.heads * panel + (v.heads - 1) * GAP + RIGHT);
    const double height = (double)(TOP + v.layers * panel + (v.layers - 1) * GAP + BOTTOM);
    lm_script script;
    lm_begin_script(&script, ctx, (lm_picture){directory, name, (int)width, (int)height});
    write_labels(&script.out, name, a);
    gr_replace_print(&script.out, "rows = %lld; columns = %lld; layer = %lld; head = %lld\n", (long long)v.layers,
                     (long long)v.heads, (long long)v.layer + 1, (long long)v.head + 1);
    gr_replace_print(&script.out, "left = %.5f; right = %.5f; bottom = %.5f; top = %.5f; across = %.5f; down = %.5f\n",
                     LEFT / width, 1 - RIGHT / width, BOTTOM / height, 1 - TOP / height, GAP / width, GAP / height);
    gr_replace_text(&script.out, common);
    gr_replace_text(&script.out, body);
    lm_end_script(&script);
}

bool lm_draw_attention(const lm_settings *set, gr_context *ctx, const char *directory, const char *name,
                       const lm_attention *a, lm_view view) {
    write_data(ctx, directory, name, a, view);
    if (view.layers * view.heads == 1)
        write_single(ctx, directory, name, a, view);
    else
        write_sheet(ctx, directory, name, a, view);
    return gr_ok(ctx) && lm_draw(set, directory, name);
}

void lm_draw_one_head(const lm_settings *set, gr_gpt *gpt, const gr_tokenizer *tokenizer, const int32_t *ids,
                      int64_t n) {
    if (gpt->config.style.kind == GR_LINEAR) return;
    lm_attention a = lm_attention_of(gpt, tokenizer, ids, n);
    const lm_view head = gr_ok(gpt->ctx) ? lm_content_head(gpt->ctx, &a) : (lm_view){0, 1, 0, 1};
    if (gr_ok(gpt->ctx)) lm_draw_attention(set, gpt->ctx, set->out, "attention", &a, head);
    lm_attention_free(&a);
}
