/* attend.h for products of bf16. */
#define PAIRED 1
#include "attend.h"
