/* Default names, made from class names. Source: keras/src/utils/naming.py, to_snake_case. */
#ifndef CORNU_NN_NAMING_INTERNAL_H
#define CORNU_NN_NAMING_INTERNAL_H

#include <stddef.h>

/* "MaxPooling2D" gives "max_pooling2d", truncated to `size` bytes. */
void cornu__snake_case(const char *class_name, char *to, size_t size);

#endif
