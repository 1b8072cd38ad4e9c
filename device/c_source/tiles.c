/* Tiles of sums in registers, for products and convolutions. */
#include "source_internal.h"

/* "for (t = 0; t < 11; t += 4)", and the tile's first: the last tile ends where the extent does. */
void cornu__c_open_tiles(CornuCText *to, const char *name, int64_t extent, int64_t tile)
{
    if (tile == extent) {
        cornu__c_print(to, "const ptrdiff_t %s = 0;\n", name);
        return;
    }
    cornu__c_print(to, "for (ptrdiff_t t%s = 0; t%s < %lld; t%s += %lld) {\n", name, name,
                   (long long)extent, name, (long long)tile);
    to->depth++;
    if (extent % tile == 0) cornu__c_print(to, "const ptrdiff_t %s = t%s;\n", name, name);
    else cornu__c_print(to, "const ptrdiff_t %s = t%s < %lld ? t%s : %lld;\n", name, name,
                        (long long)(extent - tile), name, (long long)(extent - tile));
}

void cornu__c_close_tiles(CornuCText *to, int64_t extent, int64_t tile)
{
    if (tile == extent) return;
    to->depth--;
    cornu__c_print(to, "}\n");
}

void cornu__c_fma(const CornuCCall *call, char *name, size_t size)
{
    const char *prefix = cornu__c_prefix(call->section);
    size_t      n = 0;
    cornu__c_helper(call->section->source, CORNU_C_HELPER_FMA);
    for (; prefix[n] && n + 6 < size; n++)
        name[n] = (char)(prefix[n] >= 'a' && prefix[n] <= 'z' ? prefix[n] - 'a' + 'A' : prefix[n]);
    snprintf(name + n, size - n, "_FMAF");
}
