#include "http_library_internal.h"

#ifndef CORNU_MICROHTTPD

CornuStatus cornu__http_load(void)
{
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the dashboard needs libmicrohttpd, without which "
                       "Cornu was built; install libmicrohttpd-dev and rebuild");
}

#else

#include <stddef.h>

#include "../../../device/system/library_internal.h"

static const CornuLibrarySymbol symbols[] = {
#define SYMBOL(name) { "MHD_" #name, offsetof(CornuHttpLibrary, name) },
    CORNU__HTTP_MAP(SYMBOL)
#undef SYMBOL
};

CornuHttpLibrary cornu__http;

CornuStatus cornu__http_load(void)
{
    static CornuLibrary library = {
        .files = { CORNU_MICROHTTPD }, .symbols = symbols,
        .count = sizeof symbols / sizeof *symbols, .need = "the dashboard needs libmicrohttpd",
        .help = "install libmicrohttpd12",
    };
    return cornu__library_load(&library, &cornu__http);
}

#endif
