/* The choice of the instruction set of 8-bit products. */
#include "../host/machine/cpu.h"
#include "isa/int8.h"

static const CornuInt8Loops *const by_isa[] = {
    CORNU__F32_ISAS(CORNU__ADDRESS, , cornu__int8_loops)
};
static const CornuInt8Loops *const by_vnni[] = {
    CORNU__VNNI_ISAS(CORNU__ADDRESS, , cornu__int8_loops) NULL
};

const CornuInt8Loops *cornu__int8_loops(void)
{
    const size_t isa = cornu__isa_in_use(), count = sizeof by_isa / sizeof *by_isa;
    if (isa + 1 >= count && by_vnni[0] && cornu__cpu()->vnni) return by_vnni[0];
    return by_isa[isa < count ? isa : count - 1];
}

bool cornu__int8_is_bounded(int64_t most, int32_t left, int32_t right, int32_t zero)
{
    const int64_t limit = INT64_C(1) << 31;
    if (most >= limit || left > 30) return false;
    const int64_t rounded = (most << left) + 1, half = (INT64_C(1) << right) / 2;
    return most << (left + 1) < limit &&
           rounded + half + (INT64_C(1) << right) * (zero < 0 ? -zero : zero) < limit;
}
