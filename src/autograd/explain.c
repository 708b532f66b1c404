#include "explain.h"
#include "tape.h"

#include <math.h>
#include <string.h>

enum { LINE = 256, CELL = 96, NUMBER_TEXT = 24, COLUMNS = 9 };

/* The part of the tape that y depends on, first entry first, and its leaves in the order of their use. */
typedef struct graph {
    gr_node **node;
    gr_tensor **leaf;
    int nodes, leaves;
} graph;

/* Marks what y depends on, and counts. */
static void mark(const gr_tensor *y, int *nodes, int *operands) {
    *nodes = *operands = 0;
    if (y->node) y->node->reached = true;
    for (gr_node *n = y->node; n; n = n->previous) {
        if (!n->reached) continue;
        ++*nodes;
        *operands += n->count;
        for (int i = 0; i < n->count; i++)
            if (n->in[i] && n->in[i]->node) n->in[i]->node->reached = true;
    }
}

static void add_leaf(graph *g, gr_tensor *x) {
    for (int i = 0; i < g->leaves; i++)
        if (g->leaf[i] == x) return;
    g->leaf[g->leaves++] = x;
}

/* False without memory. It lies in the step's arena; the caller takes it back. */
static bool collect(gr_tensor *y, graph *g) {
    int operands;
    mark(y, &g->nodes, &operands);
    g->node = gr_alloc_array(y->ctx, false, g->nodes + 1, sizeof *g->node);
    g->leaf = gr_alloc_array(y->ctx, false, (int64_t)operands + 1, sizeof *g->leaf); /* y itself may be one */
    g->leaves = 0;
    int place = g->nodes;
    for (gr_node *n = y->node; n; n = n->previous) {
        if (n->reached && g->node && g->leaf) {
            n->number = place;
            g->node[--place] = n;
        }
        n->reached = false;
    }
    if (!g->node || !g->leaf) return false;
    if (!y->node) add_leaf(g, y);
    for (int k = 0; k < g->nodes; k++)
        for (int i = 0; i < g->node[k]->count; i++) {
            gr_tensor *x = g->node[k]->in[i];
            if (x && !x->node) add_leaf(g, x);
        }
    return true;
}

static const char *kind_of(const gr_tensor *leaf) {
    return !leaf->requires_grad ? "constant" : leaf->persistent ? "parameter" : "variable";
}

/* NULL: none of its own; a view has taken over that of the tensor it sees. */
static const char *name_of(const gr_tensor *x) {
    const gr_node *n = x->node;
    return n && n->count > 0 && n->in[0] && n->in[0]->name == x->name ? NULL : x->name;
}

/* "w (2, 3)", "#4 (2, 3)" */
static void show_operand(const gr_tensor *x, char *out, size_t size) {
    char shape[CELL], number[NUMBER_TEXT] = "";
    const char *name = name_of(x);
    if (x->node) snprintf(number, sizeof number, "#%d", x->node->number);
    snprintf(out, size, "%.60s %s",
             name      ? name
             : x->node ? number
                       : kind_of(x),
             gr_shape_text(x->shape, shape, sizeof shape));
}

/* -- The table ----------------------------------------------------------------------------------------------------- */

typedef struct row {
    char cell[COLUMNS][LINE];
} row;

static const char *const title[COLUMNS] = {"#",     "name",  "op",         "operands", "shape",
                                           "FLOPs", "bytes", "|gradient|", "ms"};
static bool is_number(int column) { return column == 0 || column > 4; }

/* "96", "12.6k", "1.07G": whole to five digits, then three. */
static void show_amount(double x, char out[LINE]) {
    static const char *const unit[] = {"", "k", "M", "G", "T", "P"};
    const double whole_below = 1e5;
    size_t power = 0;
    if (x >= whole_below)
        for (; x >= 999.5 && power + 1 < sizeof unit / sizeof unit[0]; power++) x /= 1000;
    snprintf(out, LINE, power ? "%.3g%s" : "%.0f%s", x, unit[power]);
}

/* sqrt(sum g^2), in double: for the eye. */
static double norm_of(const gr_tensor *g) {
    double sum = 0;
    for (int64_t i = 0; i < gr_numel(g); i++) {
        const double x = (double)g->data[gr_shape_offset(g->shape, g->stride, i)];
        sum = fma(x, x, sum);
    }
    return sqrt(sum);
}

/* What leaves and results have in common. */
static void describe(const gr_tensor *x, row *r) {
    snprintf(r->cell[1], LINE, "%.60s", name_of(x) ? name_of(x) : "");
    gr_shape_text(x->shape, r->cell[4], LINE);
    if (x->grad) snprintf(r->cell[7], LINE, "%.4g", norm_of(x->grad));
}

static void describe_leaf(const gr_tensor *x, row *r) {
    *r = (row){0};
    describe(x, r);
    snprintf(r->cell[2], LINE, "%s", kind_of(x));
    show_amount((double)gr_numel(x) * (double)sizeof(gr_real), r->cell[6]);
}

static void describe_node(const gr_node *n, row *r) {
    *r = (row){0};
    describe(n->out, r);
    snprintf(r->cell[0], LINE, "%d", n->number);
    snprintf(r->cell[2], LINE, "%s", n->op->name);
    size_t at = 0;
    const size_t room = CELL; /* a concat of many is cut short */
    for (int i = 0; i < n->count && at < room; i++) {
        char operand[CELL];
        if (!n->in[i]) continue;
        show_operand(n->in[i], operand, sizeof operand);
        at += (size_t)snprintf(r->cell[3] + at, LINE - at, "%s%s", at ? ", " : "", operand);
        if (at >= room && i + 1 < n->count) snprintf(r->cell[3] + at, LINE - at, ", ...");
    }
    const gr_cost cost = gr_cost_of(n->op, n->out, n->count, n->in);
    show_amount(cost.flops, r->cell[5]);
    show_amount(cost.bytes, r->cell[6]);
    if (n->out->ctx->profile) snprintf(r->cell[8], LINE, "%.3f", 1e3 * n->seconds);
}

static void describe_sum(const gr_context *ctx, const graph *g, row *r) {
    gr_cost all = {0, 0};
    double seconds = 0;
    for (int k = 0; k < g->nodes; k++) {
        const gr_node *n = g->node[k];
        const gr_cost cost = gr_cost_of(n->op, n->out, n->count, n->in);
        all.flops += cost.flops, all.bytes += cost.bytes, seconds += n->seconds;
    }
    *r = (row){0};
    snprintf(r->cell[1], LINE, "sum");
    show_amount(all.flops, r->cell[5]);
    show_amount(all.bytes, r->cell[6]);
    if (ctx->profile) snprintf(r->cell[8], LINE, "%.3f", 1e3 * seconds);
}

/* Row k of the whole table: the title, the leaves, the ops, the sum. */
static void describe_row(const gr_context *ctx, const graph *g, int k, row *r) {
    if (k == 0) {
        *r = (row){0};
        for (int c = 0; c < COLUMNS; c++) snprintf(r->cell[c], LINE, "%s", title[c]);
        if (!ctx->profile) r->cell[COLUMNS - 1][0] = '\0';
    } else if (k <= g->leaves)
        describe_leaf(g->leaf[k - 1], r);
    else if (k <= g->leaves + g->nodes)
        describe_node(g->node[k - 1 - g->leaves], r);
    else
        describe_sum(ctx, g, r);
}

static void print_row(FILE *out, const row *r, const int width[COLUMNS]) {
    char line[COLUMNS * (LINE + 2)];
    size_t at = 0, end = 0;
    for (int c = 0; c < COLUMNS; c++) {
        at += (size_t)snprintf(line + at, sizeof line - at, is_number(c) ? "%*s  " : "%-*s  ", width[c], r->cell[c]);
        if (r->cell[c][0]) end = is_number(c) ? at - 2 : at - 2 - (size_t)width[c] + strlen(r->cell[c]);
    }
    fprintf(out, "%.*s\n", (int)end, line); /* without blanks at its end */
}

static bool ready(gr_tensor *y, FILE *out) {
    if (y && !out) gr_fail(y->ctx, "explain", "out is NULL");
    if (!y || !out) return false;
    if (gr_check_alive(y, "explain", "y") && gr_ok(y->ctx)) return true;
    fprintf(out, "(inert) %s\n", y->ctx->error);
    return false;
}

void gr_explain(gr_tensor *loss, FILE *out) {
    if (!ready(loss, out)) return;
    gr_context *ctx = loss->ctx;
    const gr_mark before = gr_mark_step(ctx);
    graph g;
    if (collect(loss, &g)) {
        row r;
        int width[COLUMNS] = {0};
        const int rows = 1 + g.leaves + g.nodes + 1;
        for (int k = 0; k < rows; k++) {
            describe_row(ctx, &g, k, &r);
            for (int c = 0; c < COLUMNS; c++)
                if ((int)strlen(r.cell[c]) > width[c]) width[c] = (int)strlen(r.cell[c]);
        }
        for (int k = 0; k < rows; k++) {
            describe_row(ctx, &g, k, &r);
            print_row(out, &r, width);
        }
    }
    gr_rewind_step(ctx, &before);
}

/* -- Mermaid ------------------------------------------------------------------------------------------------------- */

/* Within mermaid's quotes; a quote of the name's own would end them. */
static void put_quoted(FILE *out, const char *text) {
    for (; *text; text++) switch (*text) {
        case '"':
            fputs("#quot;", out);
            break;
        case '#':
            fputs("#35;", out);
            break;
        case '<':
            fputs("#lt;", out);
            break;
        case '>':
            fputs("#gt;", out);
            break;
        default:
            fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
        }
}

static int leaf_number(const graph *g, const gr_tensor *x) {
    int i = 0;
    while (i < g->leaves && g->leaf[i] != x) i++;
    return i + 1;
}

static void put_node(FILE *out, const graph *g, const gr_node *n) {
    char shape[CELL];
    const char *name = name_of(n->out);
    fprintf(out, "    n%d[\"", n->number);
    if (name) put_quoted(out, name), fputs(" = ", out);
    fprintf(out, "%s<br/>%s\"]\n", n->op->name, gr_shape_text(n->out->shape, shape, sizeof shape));
    for (int i = 0; i < n->count; i++) {
        const gr_tensor *x = n->in[i];
        if (!x) continue;
        fprintf(out, "    %c%d --> n%d\n", x->node ? 'n' : 'x', x->node ? x->node->number : leaf_number(g, x),
                n->number);
    }
}

void gr_graph_mermaid(gr_tensor *y, FILE *out) {
    if (!ready(y, out)) return;
    const gr_mark before = gr_mark_step(y->ctx);
    graph g;
    if (collect(y, &g)) {
        char shape[CELL];
        fputs("flowchart LR\n", out);
        for (int i = 0; i < g.leaves; i++) {
            fprintf(out, "    x%d([\"", i + 1);
            put_quoted(out, g.leaf[i]->name ? g.leaf[i]->name : kind_of(g.leaf[i]));
            fprintf(out, "<br/>%s\"])\n", gr_shape_text(g.leaf[i]->shape, shape, sizeof shape));
        }
        for (int k = 0; k < g.nodes; k++) put_node(out, &g, g.node[k]);
    }
    gr_rewind_step(y->ctx, &before);
}
