/* Reading and nothing else, which measures the limit of a cache or of memory (machine/limits.h). It
 * computes nothing, so there is no reference and no gain. Source: own. */
#include "lanes.h"

enum { REGISTERS = 8 };

float CORNU__PER_ISA(cornu__read)(const float *x, int64_t count);

/* Exclusive or takes one cycle, so eight of them never wait for each other; additions would take
 * more registers than there are. */
float CORNU__PER_ISA(cornu__read)(const float *x, int64_t count)
{
    Bits seen[REGISTERS] = { 0 };
    for (int64_t i = 0; i < count; i += REGISTERS * LANES)
        UNROLL for (int k = 0; k < REGISTERS; k++) seen[k] ^= (Bits)load(x + i + k * LANES);
    UNROLL for (int k = 1; k < REGISTERS; k++) seen[0] ^= seen[k];
    return (float)seen[0][0];
}
