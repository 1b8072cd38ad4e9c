/* StableHLO to what the plugin compiled of it, or kept from an earlier compilation. */
#include <stdio.h>

#include "../debug_internal.h"
#include "../memory_internal.h"
#include "cache.h"
#include "executable.h"
#include "options.h"

static CornuStatus compile_ahead(CornuPjrtCompiled *compiled, const CornuPjrtDevice *device,
                                 const PjrtProgram *program, const CornuPjrtOptions *options)
{
    PjrtCompile call = PJRT_ARGUMENTS(PjrtCompile, .topology = device->topology,
        .program = program, .options = options->bytes, .options_size = options->size);
    CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_COMPILE, &call));
    compiled->compiled = call.executable;
    return CORNU_OK;
}

static CornuStatus compile_to_run(CornuPjrtCompiled *compiled, const CornuPjrtDevice *device,
                                  const PjrtProgram *program, const CornuPjrtOptions *options)
{
    PjrtClientCompile call = PJRT_ARGUMENTS(PjrtClientCompile, .client = device->client,
        .program = program, .options = options->bytes, .options_size = options->size);
    CornuPjrtCache    cache;
    CornuStatus       status = CORNU_OK;
    cornu__pjrt_cache_open(&cache, device, program, options);
    compiled->loaded = cornu__pjrt_cache_load(&cache);
    if (!compiled->loaded) {
        status = cornu__pjrt_call(device->plugin, PJRT_CLIENT_COMPILE, &call);
        compiled->loaded = call.loaded;
        if (status == CORNU_OK) cornu__pjrt_cache_store(&cache, call.loaded);
    }
    cornu__pjrt_cache_close(&cache);
    if (status) return status;
    PjrtLoadedGetExecutable get = PJRT_ARGUMENTS(PjrtLoadedGetExecutable,
                                                 .loaded = compiled->loaded);
    CORNU__TRY(cornu__pjrt_call(device->plugin, PJRT_LOADED_GET_EXECUTABLE, &get));
    compiled->compiled = get.executable;
    return CORNU_OK;
}

static CornuStatus compile(CornuPjrtCompiled *compiled, CornuPjrtDevice *device)
{
    static const char  format[] = "mlir";
    const CornuModule *module = &compiled->module;
    CornuPjrtOptions   options;
    cornu__pjrt_options(&options, device);
    const PjrtProgram program = PJRT_ARGUMENTS(PjrtProgram, .code = module->text,
        .code_size = module->size, .format = format, .format_size = sizeof format - 1);
    return device->topology ? compile_ahead(compiled, device, &program, &options)
                            : compile_to_run(compiled, device, &program, &options);
}

static CornuStatus allocate(CornuPjrtCompiled *compiled, const CornuProgram *program, int shards)
{
    const size_t checks = (size_t)compiled->module.check_count;
    compiled->in_count = (size_t)program->input_count;
    compiled->out_count = (size_t)program->output_count + (checks > 0);
    compiled->in = cornu__allocate(compiled->in_count * (size_t)shards, sizeof *compiled->in);
    compiled->out = cornu__allocate(compiled->out_count * (size_t)shards, sizeof *compiled->out);
    for (int i = 0; i < 2; i++) {
        compiled->found[i] = cornu__allocate(2 * checks * (size_t)shards, sizeof(int64_t));
        if (!compiled->found[i]) return CORNU_ERR_MEMORY;
    }
    if (!compiled->in || !compiled->out) return CORNU_ERR_MEMORY;
    for (int i = 0; i < shards; i++) {
        compiled->in_of[i] = compiled->in + (size_t)i * compiled->in_count;
        compiled->out_of[i] = compiled->out + (size_t)i * compiled->out_count;
    }
    return CORNU_OK;
}

CornuStatus cornu__pjrt_compile_module(CornuPjrtCompiled *compiled, CornuPjrtDevice *device,
                                       const CornuProgram *program, const CornuModuleLoop *loop)
{
    CORNU__TRY(cornu__module_emit(&compiled->module, program, device->target, loop));
    if (cornu__dumps("stablehlo")) fputs(compiled->module.text, stderr);
    CORNU__TRY(allocate(compiled, program, device->base.shards));
    return compile(compiled, device);
}

void cornu__pjrt_compiled_free(CornuPjrtCompiled *compiled, const CornuPjrtDevice *device)
{
    PjrtLoadedDestroy     destroy = PJRT_ARGUMENTS(PjrtLoadedDestroy, .loaded = compiled->loaded);
    PjrtExecutableDestroy destroy_compiled = PJRT_ARGUMENTS(PjrtExecutableDestroy,
                                                            .executable = compiled->compiled);
    if (compiled->compiled)
        cornu__pjrt_try(device->plugin, PJRT_EXECUTABLE_DESTROY, &destroy_compiled);
    if (compiled->loaded) cornu__pjrt_try(device->plugin, PJRT_LOADED_DESTROY, &destroy);
    cornu__module_free(&compiled->module);
    cornu__release(compiled->in);
    cornu__release(compiled->out);
    for (int i = 0; i < 2; i++) cornu__release(compiled->found[i]);
    *compiled = (CornuPjrtCompiled){ .loaded = NULL };
}
