#include "resolver.h"

#include <ctype.h>
#include <string.h>

#include "../device.h"
#include "../system/environment_internal.h"
#include "../host/machine/accelerators.h"
#include "../log_internal.h"

static const char no_client[] = "this version has no client for TPUs over the network";

/* A network address: "grpc://10.0.0.2:8470", "10.0.0.2:8470". */
static bool is_address(const char *text)
{
    return strstr(text, "://") || strchr(text, ':') || strchr(text, '/');
}

/* The environment is untrusted: truncates, and replaces characters that would move the cursor. */
static void copy_printable(char *to, size_t size, const char *from)
{
    size_t i = 0;
    for (; from[i] && i + 1 < size; i++)
        to[i] = isprint((unsigned char)from[i]) ? from[i] : '?';
    to[i] = '\0';
}

/* Whose figures the performance model takes for a TPU that says it is a "TPU v5 lite". */
static const CornuTpuProfile *profile_of(const char *description)
{
    static const char *const kinds[][2] = {
        { "TPU v6", "v6e-8" }, { "TPU v5 lite", "v5e-8" }, { "TPU v5", "v5p-8" },
        { "TPU v4", "v4-8" }, { "TPU v3", "v3-8" },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strstr(description, kinds[i][0])) return cornu_tpu_profile(kinds[i][1]);
    return cornu_tpu_profile(NULL);
}

/* Opens a real TPU to see that it is there. False, and why in the last message, if it is not. */
static bool find_real(CornuTpuTarget *target, const char *name)
{
    CornuDevice *device = cornu_device_open(name);
    if (!device) {
        cornu_error_take();
        return false;
    }
    target->is_real = true;
    target->cores = cornu_device_shards(device);
    snprintf(target->device, sizeof target->device, "%s", name);
    snprintf(target->target, sizeof target->target, "%s", cornu_device_description(device));
    cornu_device_close(device);
    target->profile = profile_of(target->target);
    return true;
}

static CornuStatus choose_target(CornuTpuTarget *target)
{
    target->profile = cornu_tpu_profile(NULL);
    const char *wish = cornu__environment("CORNU_TPU");
    if (wish) {
        if (strcmp(wish, "local") == 0) return CORNU_OK;
        if (strncmp(wish, "pjrt:", 5) == 0 && strlen(wish) < sizeof target->device)
            return find_real(target, wish)
                 ? CORNU_OK : cornu__fail_prefix(cornu_error_status(), "CORNU_TPU");
        if (is_address(wish))
            return cornu__fail(CORNU_ERR_DEVICE, "CORNU_TPU is %s: %s; expected local, "
                               "pjrt:tpu or a profile such as v2-8", wish, no_client);
        target->profile = cornu_tpu_profile(wish);
        if (target->profile) return CORNU_OK;
        cornu_error_take();
        return cornu__fail_prefix(cornu_error_status(), "CORNU_TPU");
    }
    const char *name = "COLAB_TPU_ADDR";
    const char *address = cornu__environment(name);
    if (!address) address = cornu__environment(name = "TPU_NAME");
    if (cornu__has_tpu() && find_real(target, "pjrt:tpu")) return CORNU_OK;
    if (!address || strcmp(address, "local") == 0) return CORNU_OK;
    char printable[256];
    copy_printable(printable, sizeof printable, address);
    snprintf(target->refused, sizeof target->refused, "%s is %s, which is not used: %s", name,
             printable, no_client);
    return CORNU_OK;
}

CornuStatus cornu_tpu_resolve(CornuTpuTarget *target)
{
    *target = (CornuTpuTarget){ .workers = 1 };
    if (cornu_error_pending()) return cornu_error_status();
    CORNU__TRY(choose_target(target));
    if (*target->refused) cornu__log(CORNU_LOG_WARNING, "%s", target->refused);
    const char *profile = target->profile->name;
    if (!target->is_real) {
        target->cores = (int)target->profile->shards.value;   /* of a pod, not all */
        snprintf(target->target, sizeof target->target, "local (emulated %s)", profile);
        snprintf(target->device, sizeof target->device, "tpu:%s", profile);
    }
    target->cores_per_worker = target->cores / target->workers;
    snprintf(target->text, sizeof target->text,
             "%s%s"
             "Found TPU at: %s\n"
             "*** Num TPU Cores: %d\n"
             "*** Num TPU Workers: %d\n"
             "*** Num TPU Cores Per Worker: %d\n",
             target->refused, target->refused[0] ? "\n" : "", target->target, target->cores,
             target->workers, target->cores_per_worker);
    return CORNU_OK;
}
