/* Safetensors files for a test to read, and to remove. */
#ifndef TESTS_FILE_SUPPORT_H
#define TESTS_FILE_SUPPORT_H

#include "nn_support.h"

/* A file with this header and so many bytes of values (NULL: zeros); its path. */
const char *file_of(const char *header, size_t length, const void *values, size_t size);

/* A file tensor by tensor, each of a type's name and the bytes of its value (values NULL: zeros); notes: the inside of
 * __metadata__. */
void file_begin(void);
void file_begin_with(const char *notes);
void file_add(const char *name, const char *type, size_t value_size, gr_shape shape, const void *values);
const char *file_end(void); /* its path */

/* A file's bytes, up to so many: their number. */
size_t file_read(const char *path, uint8_t *out, size_t room);

#endif
