/* cornu_compile_to_c: checks, the copy of the model, its programs, the files. */
#include "c_source_internal.h"

static void free_function(CornuCFunction *f)
{
    cornu_program_free(f->program);
    cornu__release(f->variable);
    cornu__release(f->in);
    cornu__release(f->out);
    cornu__release(f->calls.text);
    if (f->step) cornu__step_free(f->step);
}

static void free_all(CornuCModel *c)
{
    free_function(&c->predict);
    free_function(&c->train);
    cornu__c_source_free(&c->source);
    cornu__release(c->variables);
    cornu_model_free(c->model);
    cornu_device_close(c->device);
}

static CornuStatus check(const CornuCompileToCConfig *config)
{
    if (config->batch_size < 0 || config->rows < 0 || config->extent < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_compile_to_c: .%s is negative, expected at "
                           "least 1", config->batch_size < 0 ? "batch_size"
                                      : config->rows < 0 ? "rows" : "extent");
    if (!config->model->base.built)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_compile_to_c: %s is not built; give its "
                           "input shape or load it", cornu_model_name(config->model));
    return CORNU_OK;
}

static CornuStatus compile_to_c(const CornuCompileToCConfig *config)
{
    CornuCModel c = { .config = config };
    CornuStatus status = check(config);
    if (!status) status = cornu__c_names(config->path, config->name, c.prefix, c.capitals);
    c.source.prefix = c.prefix;
    if (!status) status = cornu__c_record(&c);
    if (!status) status = cornu__c_write(&c);
    free_all(&c);
    return status;
}

CornuStatus cornu_compile_to_c_from(const CornuCompileToCConfig *config)
{
    CORNU__NEED(config->path);
    CORNU__WITHIN(config->model, "cornu_compile_to_c", compile_to_c(config));
}
