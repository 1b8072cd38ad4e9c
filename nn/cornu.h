/* Cornu: the one header a program includes. */
#ifndef CORNU_H
#define CORNU_H

#include "../device/status.h"
#include "../device/type.h"

#endif
