/* The cells of cells.h for every instruction set. */
#include "cells.h"
