/* The table of formats.def and nothing else, so that no format depends on the others. */
#include "files_internal.h"

#define FORMAT(name) extern const CornuFormat cornu__##name##_format;
#include "formats.def"
#undef FORMAT

const CornuFormat *const cornu__formats[] = {
#define FORMAT(name) &cornu__##name##_format,
#include "formats.def"
#undef FORMAT
    NULL
};
