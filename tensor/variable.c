#include "tensor_internal.h"

CornuVariable *cornu_variable_create_from(const CornuVariableConfig *config)
{
    const char *name = config->name ? config->name : "";
    if (!config->device || cornu_error_pending())
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "variable %s: no device given", name);
    CornuVariable *variable = cornu__allocate(1, sizeof *variable);
    if (!variable) return cornu__null();
    variable->device = config->device;
    variable->type = config->type;
    variable->name = cornu__copy_text(name);
    if (variable->name)
        variable->buffer = cornu_buffer_create(config->device, config->type, .use = config->use,
                                               .name = name);
    if (variable->buffer) return variable;
    cornu_variable_free(variable);
    return cornu__null();
}

void cornu_variable_free(CornuVariable *variable)
{
    if (!variable) return;
    cornu_buffer_free(variable->buffer);
    cornu__release(variable->name);
    cornu__release(variable);
}

CornuType    cornu_variable_type(const CornuVariable *variable) { return variable->type; }
const char  *cornu_variable_name(const CornuVariable *variable) { return variable->name; }
CornuDevice *cornu_variable_device(const CornuVariable *variable)
{
    return variable->device;
}

CornuStatus cornu_variable_write(CornuVariable *variable, CornuArray from)
{
    return cornu__fail_prefix(cornu_buffer_write(variable->buffer, from), variable->name);
}

CornuStatus cornu_variable_read(const CornuVariable *variable, CornuArray to)
{
    return cornu__fail_prefix(cornu_buffer_read(variable->buffer, to), variable->name);
}

CornuStatus cornu_variable_copy(CornuVariable *to, const CornuVariable *from)
{
    CornuArray host = cornu_array_from(cornu__allocate(cornu_type_bytes(from->type), 1),
                                       from->type);
    if (!host.data) return CORNU_ERR_MEMORY;
    CornuStatus status = cornu_variable_read(from, host);
    if (!status) status = cornu_variable_write(to, host);
    cornu__release(host.data);
    return status;
}

static CornuStatus expect_scalar(const CornuVariable *variable)
{
    CornuText text;
    if (variable->type.shape.rank == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "%s: is %s, expected a scalar", variable->name,
                       cornu_type_print(&text, variable->type));
}

CornuStatus cornu_variable_set(CornuVariable *variable, double value)
{
    CORNU__TRY(expect_scalar(variable));
    int64_t    space;   /* as large as any element */
    CornuArray scalar = cornu_array_from(&space, variable->type);
    cornu_array_set(scalar, 0, value);
    return cornu_variable_write(variable, scalar);
}

CornuStatus cornu_variable_get(const CornuVariable *variable, double *value)
{
    CORNU__TRY(expect_scalar(variable));
    int64_t    space;
    CornuArray scalar = cornu_array_from(&space, variable->type);
    CORNU__TRY(cornu_variable_read(variable, scalar));
    *value = cornu_array_get(scalar, 0);
    return CORNU_OK;
}
