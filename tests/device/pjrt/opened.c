#include "opened.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cornu/device/pjrt/plugin.h>

const char *pjrt_name(void)
{
    static char name[CORNU_PJRT_PATH + 8];
    const char *chosen = getenv("CORNU_PJRT");
    const size_t length = chosen ? strlen(chosen) : 0;
    const bool   is_library = length > 3 && strcmp(chosen + length - 3, ".so") == 0;
    snprintf(name, sizeof name, "pjrt:%s", is_library ? chosen : "cpu");
    return name;
}

CornuDevice *pjrt_open(int shards)
{
    char path[CORNU_PJRT_PATH];
    /* The plugins that are installed are for another processor than the emulated one. */
    if (getenv("CORNU_TEST_WRAPPER")) skip();
    if (cornu__pjrt_find(pjrt_name() + strlen("pjrt:"), path) != CORNU_OK) {
        print_message("%s\n", cornu_error_message());
        cornu_error_take();
        skip();
    }
    CornuDevice *device = cornu_device_open(.name = pjrt_name(), .shards = shards, .threads = 1);
    if (!device) fail_msg("%s", cornu_error_message());
    return device;
}
