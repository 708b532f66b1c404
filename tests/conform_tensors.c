/* The tensors that conform reads, and how they lie in memory. */
#include "conform.h"

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "nn/files.h"
#include "tensor/iterate.h"

#include <math.h>
#include <string.h>

enum { NAME = 8, WHOLE_SIZE = 4 }; /* bytes of "x12"; of an I32 */

/* -- Layout: an operand of shape (d0, ..., dn) is inside(room) ---------------------------------------------------- */

/* Its axes in reverse, each with one index before and one behind, the last with one between any two besides. */
static gr_tensor *new_room(gr_context *ctx, gr_shape shape) {
    gr_shape room = {shape.ndim > 0 ? shape.ndim : 1, {1}};
    for (int i = 0; i < shape.ndim; i++) room.dim[shape.ndim - 1 - i] = shape.dim[i];
    room.dim[room.ndim - 1] *= 2;
    for (int i = 0; i < room.ndim; i++) room.dim[i] += 2;
    return gr_full(ctx, room, (double)NAN);
}

static gr_tensor *inside(gr_tensor *room, gr_shape shape) {
    gr_axes order = {shape.ndim, false, {0}};
    const int last = gr_ndim(room) - 1;
    for (int i = 0; i <= last; i++) room = gr_slice(room, i, 1, -1, i == last ? 2 : 1);
    for (int i = 0; i < shape.ndim; i++) order.axis[i] = last - i;
    return shape.ndim > 0 ? gr_permute(room, order) : gr_reshape(room, shape);
}

/* The tensor that x is a view of. */
static gr_tensor *laid_out(const conform_call *c, gr_tensor *x) {
    if (!c->strided) return x;
    gr_tensor *room = new_room(c->ctx, gr_shape_of(x)), *to = inside(room, gr_shape_of(x));
    if (!gr_is_inert(to)) gr_run_map(GR_MAP_copy, 0, to, 1, &x);
    return room;
}

static gr_tensor *seen(const conform_call *c, gr_tensor *leaf, gr_shape shape) {
    return c->strided ? inside(leaf, shape) : leaf;
}

/* -- Reading ------------------------------------------------------------------------------------------------------- */

static gr_stored *find(conform_call *c, const char *name) {
    gr_stored *t = gr_safetensors_find(&c->file, name);
    if (t)
        t->used = true;
    else
        gr_fail(c->ctx, c->file.path, "%s is missing; %s reads, for example, %s", name, c->op->name, c->op->tensors);
    return t;
}

/* The bytes of a tensor of whole numbers; NULL after an error. */
static uint8_t *read_raw(conform_call *c, const gr_stored *t, const char *type) {
    if (strcmp(t->type_name, type) != 0)
        gr_fail(c->ctx, c->file.path, "%s: values of type %s; they must be %s", t->name, t->type_name, type);
    const size_t size = (size_t)(t->end - t->begin);
    uint8_t *raw = gr_alloc(c->ctx, false, size > 0 ? size : 1);
    return raw && gr_safetensors_bytes(&c->file, t->begin, size, raw) ? raw : NULL;
}

gr_tensor *conform_read(conform_call *c, const char *name) {
    const gr_stored *t = find(c, name);
    if (!t) return gr_inert(c->ctx);
    gr_tensor *x = gr_zeros(c->ctx, t->shape);
    gr_safetensors_read(&c->file, t, x);
    return seen(c, laid_out(c, x), t->shape);
}

bool conform_read_operands(conform_call *c) {
    char name[NAME];
    for (;; c->count++) {
        snprintf(name, sizeof name, "x%d", c->count);
        gr_stored *t = gr_safetensors_find(&c->file, name);
        if (!t) break;
        if (c->count == c->op->most) return true; /* conform_check_file names it */
        t->used = true;
        gr_tensor *x = gr_zeros(c->ctx, t->shape);
        if (!gr_safetensors_read(&c->file, t, x)) return false;
        c->leaf[c->count] = gr_requires_grad(laid_out(c, x));
        c->x[c->count] = seen(c, c->leaf[c->count], t->shape);
    }
    return c->count >= c->op->least ? gr_ok(c->ctx) : find(c, name) != NULL;
}

gr_tensor *conform_mask(conform_call *c) {
    if (!gr_safetensors_find(&c->file, "mask")) return NULL;
    const gr_stored *t = find(c, "mask");
    const uint8_t *raw = read_raw(c, t, "U8");
    gr_tensor *x = gr_zeros(c->ctx, t->shape);
    for (int64_t i = 0; i < gr_numel(x); i++) gr_data(x)[i] = raw[i];
    return seen(c, laid_out(c, x), t->shape);
}

gr_tokens conform_tokens(conform_call *c, const char *name) {
    const gr_stored *t = find(c, name);
    const int axes = t ? t->shape.ndim : 0;
    if (t && axes != 1 && axes != 2)
        gr_fail(c->ctx, c->file.path, "%s %s; it must be (B, T)", name, gr_show_shape(c->ctx, t->shape));
    const uint8_t *raw = t ? read_raw(c, t, "I32") : NULL;
    if (!raw) return (gr_tokens){NULL, 0, 0};
    gr_tokens tokens = {NULL, axes == 2 ? t->shape.dim[0] : 1, t->shape.dim[axes - 1]};
    const size_t count = (size_t)(t->end - t->begin) / WHOLE_SIZE;
    int32_t *ids = gr_alloc(c->ctx, false, (count + 1) * sizeof *ids);
    for (size_t i = 0; ids && i < count; i++) {
        const uint32_t bits = (uint32_t)gr_load_little(raw + WHOLE_SIZE * i, WHOLE_SIZE);
        memcpy(&ids[i], &bits, sizeof bits);
    }
    tokens.ids = ids;
    return tokens;
}

bool conform_check_file(conform_call *c) {
    for (size_t i = 0; i < c->file.tensors; i++)
        if (!c->file.tensor[i].used)
            gr_fail(c->ctx, c->file.path, "%s is not read by %s; for example, %s are",
                    gr_safetensors_show(&c->file, c->file.tensor[i].name), c->op->name, c->op->tensors);
    return gr_ok(c->ctx);
}

/* -- Gradients ----------------------------------------------------------------------------------------------------- */

gr_tensor *conform_gradient(conform_call *c, int i) {
    gr_tensor *all = gr_grad(c->leaf[i]), *part = seen(c, all, gr_shape_of(c->x[i]));
    /* A view adds -0 to 0, which is 0; where there is none, -0 + 0 is that too. */
    gr_tensor *dx = gr_add_scalar(part, 0), *zero = gr_scalar(c->ctx, 0);
    if (!gr_ok(c->ctx)) return gr_inert(c->ctx);
    gr_run_map(GR_MAP_copy, 0, part, 1, &zero);
    for (int64_t k = 0; k < gr_numel(all) && gr_ok(c->ctx); k++)
        if (gr_data(all)[k] != 0) gr_fail(c->ctx, c->op->name, "the gradient of x%d, strided, reaches beside it", i);
    return dx;
}
