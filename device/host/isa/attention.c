/* attend.h for products of f32. */
#define PAIRED 0
#include "attend.h"
