#include "subject.h"

#include <stdlib.h>
#include <string.h>

#include "../../models/models.h"
#include "bench.h"

const char *subject_model(int i)
{
    int                        count;
    const CornuReferenceModel *references = cornu_reference_models(&count);
    if (i < count) return references[i].name;
    return network(i - count) ? network(i - count)->name : NULL;
}

bool subject_wanted(const char *list, const char *model)
{
    if (list) return bench_listed(list, model);
    return !network_named(model) && !cornu_reference_model(model)->large;
}

const char *subject_device(int i)
{
    static const char *const names[SUBJECT_DEVICES + 1] = { "cpu", "tpu", NULL };
    return names[i];
}

bool subject_is_plugin(const char *device)
{
    return !strncmp(device, "pjrt", 4) && (!device[4] || device[4] == ':');
}

/* A config for the word at the start of the list, if it is a device. */
static bool add_config(const char *list, const SubjectConfig *base, SubjectConfig *to)
{
    const size_t length = strcspn(list, ",");
    if (length >= sizeof to->device) return false;
    *to = *base;
    memcpy(to->device, list, length);
    to->device[length] = '\0';
    bool known = subject_is_plugin(to->device);
    for (int i = 0; i < SUBJECT_DEVICES; i++) known |= !strcmp(to->device, subject_device(i));
    return known;
}

int subject_configs(const char *devices, const SubjectConfig *base,
                    SubjectConfig to[SUBJECT_MOST])
{
    int count = 0;
    for (const char *at = devices ? devices : "cpu,tpu"; at;
         at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (count == SUBJECT_MOST || !add_config(at, base, &to[count])) return -1;
        count++;
    }
    return count;
}

int subject_own_configs(const char *devices, const SubjectConfig *base,
                        SubjectConfig to[SUBJECT_MOST])
{
    int       count = 0;
    const int all = subject_configs(devices, base, to);
    for (int i = 0; i < all; i++)
        if (!subject_is_plugin(to[i].device)) to[count++] = to[i];
    return count;
}

/* Text is predicted character by character. */
static CornuModel *build(const Subject *s, const CornuReferenceModel *reference)
{
    static const char *const presets[] = { "full", "quick" };
    for (int i = 0; s->config.predicts && i < 2; i++) {
        const CornuTextPreset *preset = cornu_text_preset(presets[i]);
        if (!strcmp(preset->model, reference->name))
            return cornu_shakespeare_lstm(.preset = preset, .stateful = true,
                                          .sequence_length = 1);
    }
    return reference->build(&(CornuNetworkConfig){ 0 });
}

static CornuStatus make_model(Subject *s)
{
    enum { STEPS_PER_EPOCH = 100 };
    const CornuReferenceModel *reference = NULL;
    s->network = network_named(s->config.model);
    if (!s->network) reference = cornu_reference_model(s->config.model);
    s->model = s->network ? s->network->build() : build(s, reference);
    if (s->config.predicts) return cornu_compile(s->model, .device = s->device);
    return cornu_compile(s->model, .device = s->device, .metrics = { CORNU_ACCURACY },
                         .loss = cornu_loss(reference ? reference->loss
                                                      : "sparse_categorical_crossentropy"),
                         .optimizer = reference ? cornu_reference_optimizer(reference,
                                                                            STEPS_PER_EPOCH, 0.0)
                                                : cornu_adam());
}

/* Pseudo-random whole numbers below `range`, u8 or i32. */
static CornuStatus invent(CornuArray *array, CornuType type, int range)
{
    const int64_t count = cornu_type_count(type);
    void         *data = malloc(cornu_type_bytes(type));
    uint64_t      state = 1;
    *array = cornu_array_from(data, type);
    if (!data) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for a batch");
    for (int64_t i = 0; i < count; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const int number = (int)((state >> 33) % (uint64_t)range);   /* Knuth's MMIX generator */
        if (type.dtype == CORNU_I32) ((int32_t *)data)[i] = number;
        else ((uint8_t *)data)[i] = (uint8_t)number;
    }
    return CORNU_OK;
}

static CornuStatus invent_input(Subject *s)
{
    CornuType type = cornu_reference_input_type(s->model, s->config.batch);
    if (!s->network) return invent(&s->x, type, 256);
    type.dtype = s->network->dtype;
    const CornuStatus status = invent(&s->x, type, s->network->range);
    const int64_t steps = type.shape.extent[1];
    int32_t      *x = s->x.data;
    for (int64_t i = 0; !status && s->network->padded && i < s->config.batch; i++)
        for (int64_t t = 0; t < steps; t++)
            if (t >= network_length(i, steps)) x[i * steps + t] = 0;
            else if (x[i * steps + t] == 0) x[i * steps + t] = 1;
    return status;
}

static CornuStatus make_data(Subject *s)
{
    const CornuShape classes = cornu_model_output_shape(s->model);
    CornuStatus      status = invent_input(s);
    if (status) return status;
    if (s->config.predicts) {
        CornuShape y = classes;
        y.extent[0] = s->config.batch;
        const CornuType type = cornu_type_from(CORNU_F32, y);
        s->to = cornu_array_from(malloc(cornu_type_bytes(type)), type);
        return s->to.data ? CORNU_OK : cornu_error_set(CORNU_ERR_MEMORY, "no memory");
    }
    status = invent(&s->y, cornu_reference_label_type(s->model, s->config.batch),
                    (int)classes.extent[classes.rank - 1]);
    if (status) return status;
    s->executable = cornu_model_train_step(s->model, s->x.type, s->y.type);
    return s->executable ? CORNU_OK : cornu_error_status();
}

CornuStatus subject_open(Subject *s, const SubjectConfig *config)
{
    *s = (Subject){ .config = *config };
    s->device = cornu_device_open(config->device, .threads = config->threads,
                                  .shards = config->predicts ? 1 : config->shards);
    if (!s->device) return cornu_error_take();
    const CornuStatus status = make_model(s);
    return status ? status : make_data(s);
}

void subject_close(Subject *s)
{
    cornu_model_free(s->model);
    cornu_device_close(s->device);
    free(s->x.data);
    free(s->y.data);
    free(s->to.data);
    *s = (Subject){ 0 };
}

int subject_shards(const Subject *s)  { return cornu_device_shards(s->device); }
int subject_threads(const Subject *s) { return cornu_device_threads(s->device); }

CornuStatus subject_train(void *subject)
{
    const Subject    *s = subject;
    const CornuStatus status = cornu_train_on_batch(s->model, s->x, s->y, NULL);
    return status ? status : cornu_device_wait(s->device);
}
