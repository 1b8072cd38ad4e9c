#include "subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST = 32, MOST_JSON = 1 << 26 };

CornuStatus subject_find(Subject *subject, const char *name)
{
    struct stat                about;
    int                        count;
    const CornuReferenceModel *references = cornu_reference_models(&count);
    const char                *names[MOST];
    *subject = (Subject){ .name = name };
    for (int i = 0; i < count; i++)
        if (!strcmp(references[i].name, name)) {
            subject->reference = &references[i];
            return CORNU_OK;
        }
    if (stat(name, &about) == 0)
        return S_ISDIR(about.st_mode)
                   ? cornu_error_set(CORNU_ERR_FILE, "%s: is a folder, expected a model's file; a "
                                     "SavedModel becomes one by Keras' model.save(\"my.keras\"), "
                                     "or by tf2onnx", name)
                   : CORNU_OK;
    for (int i = 0; i < count && i < MOST; i++) names[i] = references[i].name;
    const char *nearest = cornu_nearest(name, names, count < MOST ? count : MOST);
    return cornu_error_set(CORNU_ERR_FILE, "%s: no such file, nor a network of models/%s%s%s", name,
                           nearest ? "; did you mean " : "", nearest ? nearest : "",
                           nearest ? "?" : "");
}

/* An architecture as Keras' to_json writes it. */
static CornuModel *from_json(const char *path)
{
    FILE       *file = fopen(path, "rb");
    char       *text = malloc(MOST_JSON);
    CornuModel *model = NULL;
    size_t      size = file && text ? fread(text, 1, MOST_JSON, file) : 0;
    if (!file || !text || size == MOST_JSON) {
        cornu_error_set(CORNU_ERR_FILE, "%s: cannot be read, or is larger than %d MiB", path,
                        MOST_JSON >> 20);
    } else {
        text[size] = '\0';
        model = cornu_model_from_json(text);
        if (!model) {
            char              why[600];
            const CornuStatus status = cornu_error_status();
            snprintf(why, sizeof why, "%s", cornu_error_message());
            cornu_error_take();
            cornu_error_set(status, "%s: %s", path, why);
        }
    }
    if (file) fclose(file);
    free(text);
    return model;
}

CornuModel *subject_model(const Subject *subject)
{
    if (subject->reference) return subject->reference->build(&(CornuNetworkConfig){ 0 });
    const char *suffix = strrchr(subject->name, '.');
    if (suffix && !strcmp(suffix, ".json")) return from_json(subject->name);
    return cornu_model_load(subject->name);
}
