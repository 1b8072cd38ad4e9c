/* Requests to cornu serve: the first byte selects the model, the first line is the path after
 * "/v1/models/", the rest the body. What has rows is not computed: they must fit the model. */
#include "fuzz.h"

#include "../../examples/cornu/serve/api.h"

enum { MODELS = 3 };

static Settings settings = { .versions = 1, .batch_size = 1, .poll_s = 1 };
static Api      api = { .settings = &settings };

static CornuModel *make(int i)
{
    CornuSymbol *x = cornu_input(.shape = { 2, 3 }, .name = "x");
    CornuSymbol *z = cornu_call(cornu_rescaling(2), x);
    if (i == 0) return cornu_model(.inputs = { x }, .outputs = { z });
    CornuSymbol *n = cornu_input(.shape = { 1 }, .dtype = i == 1 ? CORNU_I32 : CORNU_STRING,
                                 .name = "n");
    static const char *const words[] = { "a", "b" };
    CornuSymbol *y = i == 1 ? n : cornu_call(cornu_string_lookup(.vocabulary = { words, 2 }), n);
    y = cornu_call(cornu_flatten(), cornu_call(cornu_embedding(5, 4), y));
    return cornu_model(.inputs = { x, n }, .outputs = { z, y });
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char *const names[MODELS] = { "m0.safetensors", "m1.safetensors",
                                               "m2.safetensors" };
    static char              flags[MODELS][600];
    (void)argc, (void)argv;
    settings.options.device = "cpu";
    for (int i = 0; i < MODELS; i++) {
        const char *path = fuzz_path(names[i]);
        CornuModel *model = make(i);
        fuzz_expect(model && !cornu_model_save(model, path), "a model");
        cornu_model_free(model);
        snprintf(flags[i], sizeof flags[i], "m%d=%s", i, path);
        settings.model.text[settings.model.count++] = flags[i];
    }
    api.library = library_create(&settings);
    api.metrics = metrics_create();
    fuzz_expect(api.library && api.metrics && library_update(api.library, false),
                "models that load");
    return 0;
}

static void check_rows(const Job *job)
{
    for (int i = 0; i < job->rows.x_count; i++) {
        const CornuShape got = job->rows.x[i].type.shape;
        const CornuShape wanted = job->served->inputs[i].type.shape;
        fuzz_expect(got.rank == wanted.rank && got.extent[0] == job->rows.count, "rows");
        for (int axis = 1; axis < got.rank; axis++)
            fuzz_expect(got.extent[axis] == wanted.extent[axis], "extents of the model");
        if (job->rows.x[i].type.dtype != CORNU_STRING)
            fuzz_read(job->rows.x[i].data, cornu_type_bytes(job->rows.x[i].type));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    char           path[300];
    if (!line || line == data) return 0;
    snprintf(path, sizeof path, "/v1/models/m%d%.*s", data[0] % MODELS, (int)(line - data - 1),
             (const char *)data + 1);
    const size_t body = size - (size_t)(line - data) - 1;
    char        *bytes = malloc(body + 1);   /* exactly so many, for the sanitizer */
    if (!bytes) return 0;
    memcpy(bytes, line + 1, body);
    ApiRequest request = { .begun_s = 0 };
    const bool rows = api_begin(&api, &request, body ? "POST" : "GET", path, bytes, body);
    fuzz_expect(rows == (request.job.rows.count > 0), "rows, or an answer");
    if (rows) check_rows(&request.job);
    else fuzz_expect(request.reply.body.length > 0, "an answer");
    api_free(&request);
    free(bytes);
    return 0;
}
