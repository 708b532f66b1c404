#include "file_support.h"

#include "nn/files.h"
#include "tensor/shape.h"

#include <stdio.h>
#include <string.h>

enum { LENGTH = 8, ROOM = 1 << 20, HEADER = 1 << 13, TENSOR = 128 }; /* bytes; of a tensor's part of the header */

const char *file_of(const char *header, size_t length, const void *values, size_t size) {
    static uint8_t bytes[ROOM];
    ck_assert(LENGTH + length + size <= ROOM);
    gr_store_little(length, LENGTH, bytes);
    memcpy(bytes + LENGTH, header, length);
    memset(bytes + LENGTH + length, 0, size);
    if (values) memcpy(bytes + LENGTH + length, values, size);
    return temporary_file(bytes, LENGTH + length + size);
}

static char head[HEADER];
static uint8_t body[ROOM - HEADER - LENGTH];
static size_t head_size, body_size;

void file_begin(void) { head_size = body_size = 0; }

void file_begin_with(const char *notes) {
    file_begin();
    head_size = (size_t)snprintf(head, sizeof head, "{\"__metadata__\":{%s}", notes);
}

static uint64_t bits_of(const uint8_t *value, size_t size) {
    uint64_t eight;
    uint32_t four;
    uint16_t two;
    if (size == sizeof eight) return memcpy(&eight, value, size), eight;
    if (size == sizeof four) return memcpy(&four, value, size), four;
    if (size == sizeof two) return memcpy(&two, value, size), two;
    return *value;
}

void file_add(const char *name, const char *type, size_t value_size, gr_shape shape, const void *values) {
    const size_t size = (size_t)gr_shape_numel(shape) * value_size;
    ck_assert(head_size + TENSOR < HEADER && body_size + size <= sizeof body);
    char *at = head + head_size;
    at += sprintf(at, "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[", head_size ? ',' : '{', name, type);
    for (int i = 0; i < shape.ndim; i++) at += sprintf(at, "%s%d", i > 0 ? "," : "", (int)shape.dim[i]);
    at += sprintf(at, "],\"data_offsets\":[%zu,%zu]}", body_size, body_size + size);
    head_size = (size_t)(at - head);
    memset(body + body_size, 0, size);
    for (size_t i = 0; values && i < size; i += value_size)
        gr_store_little(bits_of((const uint8_t *)values + i, value_size), value_size, body + body_size + i);
    body_size += size;
}

const char *file_end(void) {
    head[head_size] = '}';
    return file_of(head, head_size + 1, body, body_size);
}

size_t file_read(const char *path, uint8_t *out, size_t room) {
    FILE *file = fopen(path, "rb");
    const size_t size = file ? fread(out, 1, room, file) : 0;
    ck_assert_msg(file && fclose(file) == 0 && 0 < size && size < room, "%s cannot be read", path);
    return size;
}
