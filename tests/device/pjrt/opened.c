#include "opened.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../skip.h"

#include <cornu/device/pjrt/plugin.h>

const char *pjrt_name(void)
{
    static char name[CORNU_PJRT_PATH + 64];
    const char *chosen = getenv("CORNU_TEST_PJRT");
    snprintf(name, sizeof name, "pjrt:%s", chosen && *chosen ? chosen : "cpu");
    return name;
}

static void skip_for_reason(void)
{
    print_message("%s\n", cornu_error_message());
    cornu_error_take();
    SKIP_FOR(SKIP_PJRT);
}

int pjrt_most_shards(void)
{
    static int most;
    if (!most) {
        CornuDevice *device = pjrt_open(0);
        const bool   is_cpu = strncmp(cornu_device_description(device), "pjrt: cpu,", 10) == 0;
        most = is_cpu ? 64 : cornu_device_shards(device);
        cornu_device_close(device);
    }
    return most;
}

CornuDevice *pjrt_open(int shards) { return pjrt_open_with("", shards); }

CornuDevice *pjrt_open_with(const char *options, int shards)
{
    static CornuPjrtName parsed;
    char                 path[CORNU_PJRT_PATH], name[CORNU_PJRT_PATH + 128];
    snprintf(name, sizeof name, "%s%s", pjrt_name(), options);
    /* The plugins that are installed are for another processor than the emulated one. */
    if (getenv("CORNU_TEST_WRAPPER")) SKIP_FOR(SKIP_EMULATOR);
    if (cornu__pjrt_parse(name, &parsed) != CORNU_OK) fail_msg("%s", cornu_error_message());
    if (cornu__pjrt_find(parsed.plugin, path) != CORNU_OK) skip_for_reason();
    CornuDevice *device = cornu_device_open(.name = name, .shards = shards, .threads = 1);
    if (device) return device;
    /* A chosen plugin has as many devices as the machine. */
    if (shards > 1 && strstr(cornu_error_message(), "shards, but the plugin has"))
        skip_for_reason();
    fail_msg("%s", cornu_error_message());
    return NULL;
}
