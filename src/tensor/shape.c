#include "shape.h"

int64_t gr_shape_numel(gr_shape shape) {
    int64_t numel = 1;
    bool empty = false;
    for (int i = 0; i < shape.ndim; i++) {
        if (shape.dim[i] < 0) return -1;
        if (shape.dim[i] == 0)
            empty = true;
        else if (numel > INT64_MAX / shape.dim[i])
            return -1;
        else
            numel *= shape.dim[i];
    }
    return empty ? 0 : numel;
}

bool gr_shape_equal(gr_shape a, gr_shape b) {
    if (a.ndim != b.ndim) return false;
    for (int i = 0; i < a.ndim; i++)
        if (a.dim[i] != b.dim[i]) return false;
    return true;
}

bool gr_shape_broadcast(gr_shape a, gr_shape b, gr_shape *out) {
    gr_shape wide = a.ndim >= b.ndim ? a : b, narrow = a.ndim >= b.ndim ? b : a;
    for (int i = 1; i <= narrow.ndim; i++) {
        int64_t *w = &wide.dim[wide.ndim - i], n = narrow.dim[narrow.ndim - i];
        if (*w == 1)
            *w = n;
        else if (n != 1 && n != *w)
            return false;
    }
    *out = wide;
    return true;
}

void gr_shape_strides(gr_shape shape, int64_t stride[GR_MAX_DIMS]) {
    int64_t step = 1;
    for (int i = shape.ndim - 1; i >= 0; i--) {
        stride[i] = step;
        step *= shape.dim[i] > 0 ? shape.dim[i] : 1;
    }
}

int64_t gr_shape_offset(gr_shape shape, const int64_t *stride, int64_t index) {
    int64_t offset = 0;
    for (int i = shape.ndim - 1; i >= 0; i--) {
        const int64_t size = shape.dim[i] > 0 ? shape.dim[i] : 1; /* of nothing: where it would begin */
        offset += index % size * stride[i];
        index /= size;
    }
    return offset;
}

int gr_shape_axis(gr_shape shape, int axis) {
    if (axis < 0) axis += shape.ndim;
    return axis >= 0 && axis < shape.ndim ? axis : -1;
}

bool gr_shape_axes(gr_shape shape, gr_axes axes, unsigned *set) {
    *set = 0;
    if (axes.count > GR_MAX_DIMS) return false;
    if (axes.count < 0) *set = (1u << shape.ndim) - 1;
    for (int i = 0; i < axes.count; i++) {
        int axis = gr_shape_axis(shape, axes.axis[i]);
        if (axis < 0 || *set >> axis & 1) return false;
        *set |= 1u << axis;
    }
    return true;
}

gr_shape gr_shape_reduced(gr_shape shape, unsigned set, bool keep) {
    gr_shape out = {0, {0}};
    for (int i = 0; i < shape.ndim; i++) {
        if (!(set >> i & 1))
            out.dim[out.ndim++] = shape.dim[i];
        else if (keep)
            out.dim[out.ndim++] = 1;
    }
    return out;
}

const char *gr_shape_text(gr_shape shape, char *out, size_t size) {
    size_t at = (size_t)snprintf(out, size, "(");
    for (int i = 0; i < shape.ndim && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? ", " : "", (long long)shape.dim[i]);
    if (at < size) snprintf(out + at, size - at, shape.ndim == 1 ? ",)" : ")");
    return out;
}
