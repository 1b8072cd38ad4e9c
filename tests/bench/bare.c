#include "bare.h"

#include <stdlib.h>

#include "../../device/pjrt/options.h"

static CornuStatus compile(Bare *bare, const CornuModule *module)
{
    static const char format[] = "mlir";
    CornuPjrtOptions  options;
    cornu__pjrt_options(&options, bare->device);
    const PjrtProgram program = PJRT_ARGUMENTS(PjrtProgram, .code = module->text,
        .code_size = module->size, .format = format, .format_size = sizeof format - 1);
    PjrtClientCompile call = PJRT_ARGUMENTS(PjrtClientCompile, .client = bare->device->client,
        .program = &program, .options = options.bytes, .options_size = options.size);
    const CornuStatus status = cornu__pjrt_call(bare->device->plugin, PJRT_CLIENT_COMPILE, &call);
    bare->loaded = call.loaded;
    return status;
}

static CornuStatus upload_zeros(Bare *bare, int i, CornuType type)
{
    void              *zeros = calloc(cornu_type_bytes(type) + 1, 1);
    PjrtBufferFromHost copy = PJRT_ARGUMENTS(PjrtBufferFromHost, .client = bare->device->client,
        .data = zeros, .type = (int)cornu__pjrt_type(type.dtype), .extents = type.shape.extent,
        .rank = (size_t)type.shape.rank, .semantics = PJRT_DURING_CALL,
        .device = bare->device->devices[0]);
    CornuStatus status = zeros ? CORNU_OK : cornu_error_set(CORNU_ERR_MEMORY, "no memory");
    if (!status)
        status = cornu__pjrt_call(bare->device->plugin, PJRT_CLIENT_BUFFER_FROM_HOST, &copy);
    if (!status) status = cornu__pjrt_await(bare->device->plugin, copy.done);
    bare->in[i] = copy.buffer;
    free(zeros);
    return status;
}

CornuStatus bare_open(Bare *bare, CornuDevice *device, const CornuProgram *program)
{
    CornuModule module;
    *bare = (Bare){ .device = cornu__pjrt_of(device) };
    CornuStatus status = cornu__module_emit(&module, program, bare->device->target, NULL);
    if (!status) status = compile(bare, &module);
    bare->in_count = program->input_count;
    bare->out_count = program->output_count + (module.check_count > 0);
    cornu__module_free(&module);
    bare->in = calloc((size_t)bare->in_count + 1, sizeof *bare->in);
    bare->out = calloc((size_t)bare->out_count + 1, sizeof *bare->out);
    bare->input_of = calloc((size_t)bare->out_count + 1, sizeof *bare->input_of);
    if (!status && !(bare->in && bare->out && bare->input_of))
        status = cornu_error_set(CORNU_ERR_MEMORY, "no memory");
    for (int i = 0; i < bare->out_count && !status; i++)
        bare->input_of[i] = i < program->output_count ? program->outputs[i].alias : -1;
    for (int i = 0; i < bare->in_count && !status; i++)
        status = upload_zeros(bare, i, cornu_program_type(program, program->inputs[i]));
    return status;
}

void bare_close(Bare *bare)
{
    PjrtLoadedDestroy destroy = PJRT_ARGUMENTS(PjrtLoadedDestroy, .loaded = bare->loaded);
    for (int i = 0; i < bare->in_count && bare->in; i++)
        cornu__pjrt_destroy(bare->device, bare->in[i]);
    if (bare->loaded) cornu__pjrt_call(bare->device->plugin, PJRT_LOADED_DESTROY, &destroy);
    free(bare->input_of);
    free(bare->out);
    free(bare->in);
    *bare = (Bare){ .loaded = NULL };
}

CornuStatus bare_run(Bare *bare)
{
    PjrtEvent          *done;
    PjrtBuffer *const  *arguments = bare->in;
    PjrtExecuteOptions  options = PJRT_ARGUMENTS(PjrtExecuteOptions, .kept = NULL);
    PjrtLoadedExecute   call = PJRT_ARGUMENTS(PjrtLoadedExecute, .loaded = bare->loaded,
        .options = &options, .arguments = &arguments, .device_count = 1,
        .argument_count = (size_t)bare->in_count, .outputs = &bare->out, .done = &done);
    CornuStatus status = cornu__pjrt_call(bare->device->plugin, PJRT_LOADED_EXECUTE, &call);
    if (!status) status = cornu__pjrt_await(bare->device->plugin, done);
    for (int i = 0; i < bare->out_count && !status; i++) {
        const int to = bare->input_of[i];
        cornu__pjrt_destroy(bare->device, to < 0 ? bare->out[i] : bare->in[to]);
        if (to >= 0) bare->in[to] = bare->out[i];
    }
    return status;
}
