#ifndef CORNU_DEVICE_SHOWN_INTERNAL_H
#define CORNU_DEVICE_SHOWN_INTERNAL_H

#include <stddef.h>

#include "shown.h"

/* Shows the control characters of a message but its line ends, truncating it to `size`. */
void cornu__show_controls(char *text, size_t size);

#endif
