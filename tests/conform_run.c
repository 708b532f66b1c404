/* conform, from its arguments to the file it writes. */
#include "conform.h"

#include "autograd/autograd.h"

#include <ctype.h>
#include <string.h>

enum { DONE, FAILED, WRONG_USAGE };                             /* exit status */
enum { RESULTS = CONFORM_OPERANDS + 2, NAME = 16, TEXT = 128 }; /* NAME: "dx" and any int */

static int print_usage(void) {
    fputs("usage: conform OP in.safetensors out.safetensors [key=value ...] [strided=1]\n\n"
          "OP, its number of operands, and an example: the shapes of a file's tensors, and keys\n",
          stderr);
    for (int i = 0; i < conform_op_count; i++) {
        const conform_op *op = &conform_ops[i];
        fprintf(stderr, "  %-18s%d", op->name, op->least);
        if (op->most > op->least) fprintf(stderr, "-%d", op->most);
        fprintf(stderr, "%s  %s%s%s\n", op->most > op->least ? "" : "  ", op->tensors, *op->keys ? "  " : "", op->keys);
    }
    return WRONG_USAGE;
}

/* On one line, whatever arguments and names of a file hold: a control byte as \x0a. */
static void say(const char *text) {
    fputs("conform: ", stderr);
    for (; *text; text++) fprintf(stderr, iscntrl((unsigned char)*text) ? "\\x%02x" : "%c", (unsigned char)*text);
    fputc('\n', stderr);
}

static const conform_op *find_op(const char *name) {
    for (int i = 0; i < conform_op_count; i++)
        if (strcmp(conform_ops[i].name, name) == 0) return &conform_ops[i];
    return NULL;
}

static bool write_results(conform_call *c, const char *path, gr_tensor *y) {
    char name[CONFORM_OPERANDS][NAME];
    gr_safetensors_entry result[RESULTS];
    gr_safetensors_content content = {.tensor = result};
    result[content.tensors++] = (gr_safetensors_entry){"y", gr_contiguous(y)};
    for (int i = 0; i < c->count; i++) {
        snprintf(name[i], NAME, "dx%d", i);
        result[content.tensors++] = (gr_safetensors_entry){name[i], conform_gradient(c, i)};
    }
    if (c->weights) result[content.tensors++] = (gr_safetensors_entry){"weights", gr_contiguous(c->weights)};
    return gr_safetensors_write(c->ctx, path, content);
}

static bool run(conform_call *c, const char *out) {
    if (!conform_read_operands(c)) return false;
    gr_tensor *y = c->op->run(c);
    if (!gr_ok(c->ctx) || !conform_check_used(c)) return false;
    gr_tensor *grad = conform_read(c, "grad");
    return conform_check_file(c) && gr_backward_from(y, grad) && write_results(c, out, y);
}

int conform(int count, char **argument) {
    if (count < 3) return print_usage();
    conform_call c = {.op = find_op(argument[0]), .key = argument + 3, .keys = count - 3};
    if (!c.op) {
        char text[TEXT];
        snprintf(text, sizeof text, "no op %.40s; conform without arguments lists them", argument[0]);
        say(text);
        return WRONG_USAGE;
    }
    c.ctx = gr_context_new();
    if (conform_check_keys(&c)) c.strided = conform_flag(&c, "strided");
    bool done = false;
    if (gr_safetensors_open(c.ctx, argument[1], &c.file)) {
        done = run(&c, argument[2]);
        gr_safetensors_close(&c.file);
    }
    if (!done) say(gr_error_message(c.ctx));
    gr_context_free(c.ctx);
    return done ? DONE : c.misused ? WRONG_USAGE : FAILED;
}
