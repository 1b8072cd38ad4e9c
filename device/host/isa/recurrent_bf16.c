/* The cells of cells.h for instruction sets that round to bf16. */
#include "cells.h"
