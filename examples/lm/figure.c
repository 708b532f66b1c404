#include "figure.h"

#include "../gnuplot.h"

bool lm_begin_script(lm_file *script, gr_context *ctx, lm_picture p) {
    char file[64];
    snprintf(file, sizeof file, "%s.gp", p.name);
    if (!lm_begin_file(script, ctx, p.directory, file)) return false;
    fprintf(script->out,
            "# Draws %s.png, where this gnuplot can, and %s.svg in this directory: gnuplot %s.gp\n"
            "reset\n"
            "kinds = strstrt(GPVAL_TERMINALS, 'pngcairo') > 0 ? 'png svg' : 'svg'\n"
            "do for [kind in kinds] {\n"
            "if (kind eq 'png') {\n"
            "    set terminal pngcairo noenhanced size %d,%d font 'sans,11'\n"
            "} else {\n"
            "    set terminal svg noenhanced size %d,%d font 'sans,11' background rgb 'white'\n"
            "}\n"
            "set output '%s.'.kind\n",
            p.name, p.name, p.name, p.width, p.height, p.width, p.height, p.name);
    return true;
}

void lm_end_script(lm_file *script) {
    fputs("set output\n}\n", script->out);
    lm_end_file(script);
}

bool lm_draw(const lm_settings *set, const char *directory, const char *name) {
    static bool warned; /* that there is no gnuplot */
    char script[64], quoted[LM_PATH];
    snprintf(script, sizeof script, "%s.gp", name);
    const int status = gnuplot(directory, script);
    if (status == 0) return true;
    for (int i = 0; i < 2; i++) { /* half a picture, or an older one of other data */
        char picture[LM_PATH];
        const int length = snprintf(picture, sizeof picture, "%s/%s.%s", directory, name, i == 0 ? "png" : "svg");
        if (length < LM_PATH) remove(picture);
    }
    if (status != GNUPLOT_MISSING)
        lm_warn(set, "no picture: gnuplot fails on %s/%s", directory, script);
    else if (!warned)
        lm_warn(set, "no pictures, as gnuplot is not installed; with it: cd %s && gnuplot *.gp",
                lm_quoted(quoted, directory));
    warned = true;
    return false;
}
