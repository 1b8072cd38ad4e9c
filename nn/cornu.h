/* Cornu: the one header a program includes. */
#ifndef CORNU_H
#define CORNU_H

/* Major, minor, patch. */
#define CORNU_VERSION "0.1.0"

#include "../device/status.h"
#include "../device/type.h"

#endif
