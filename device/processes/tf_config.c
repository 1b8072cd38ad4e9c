#include "tf_config_internal.h"

#include <jansson.h>
#include <string.h>

#include "../memory_internal.h"
#include "processes.h"

static CornuStatus expected(const char *what)
{
    return cornu__fail(CORNU_ERR_ARGUMENT, "TF_CONFIG: expected %s", what);
}

/* Appends the addresses of a job of the cluster. */
static CornuStatus add_job(CornuTfConfig *config, const json_t *cluster, const char *job)
{
    const json_t *addresses = json_object_get(cluster, job);
    if (addresses && !json_is_array(addresses))
        return expected("lists of \"host:port\" in \"cluster\"");
    for (size_t i = 0; i < json_array_size(addresses); i++) {
        const char *address = json_string_value(json_array_get(addresses, i));
        if (!address || !strchr(address, ':'))
            return expected("lists of \"host:port\" in \"cluster\"");
        if (config->count == CORNU_MAX_PROCESSES)
            return cornu__fail(CORNU_ERR_ARGUMENT, "TF_CONFIG: more than %d processes",
                               CORNU_MAX_PROCESSES);
        if (!(config->workers[config->count] = cornu__copy_text(address))) return CORNU_ERR_MEMORY;
        config->count++;
    }
    return CORNU_OK;
}

/* The rank of the task: `chiefs` ranks come before the first worker. */
static CornuStatus find_rank(CornuTfConfig *config, const json_t *task, int chiefs)
{
    const char   *type = json_string_value(json_object_get(task, "type"));
    const json_t *number = json_object_get(task, "index");
    const bool    chief = type && (!strcmp(type, "chief") || !strcmp(type, "master"));
    if (!type || (!chief && strcmp(type, "worker") != 0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "TF_CONFIG: \"task\" is of type \"%s\", expected "
                           "\"worker\" or \"chief\"", type ? type : "");
    const json_int_t index = json_integer_value(number);
    const int        most = chief ? chiefs : config->count - chiefs;
    if (!json_is_integer(number) || index < 0 || index >= most)
        return cornu__fail(CORNU_ERR_ARGUMENT, "TF_CONFIG: \"task\" is %s %lld, expected 0 to %d, "
                           "as \"cluster\" lists %d", type, (long long)index, most - 1, most);
    config->rank = (int)index + (chief ? 0 : chiefs);
    return CORNU_OK;
}

static CornuStatus read_config(CornuTfConfig *config, const json_t *root)
{
    const json_t *cluster = json_object_get(root, "cluster");
    if (!json_is_object(root)) return expected("a JSON object with \"cluster\" and \"task\"");
    if (!cluster || json_object_size(cluster) == 0) return CORNU_OK;
    if (json_array_size(json_object_get(cluster, "ps")) > 0)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "TF_CONFIG: \"cluster\" lists parameter servers "
                           "(\"ps\"), expected \"worker\" and \"chief\" alone");
    config->workers = cornu__allocate(CORNU_MAX_PROCESSES, sizeof *config->workers);
    if (!config->workers) return CORNU_ERR_MEMORY;
    CORNU__TRY(add_job(config, cluster, "chief"));
    CORNU__TRY(add_job(config, cluster, "master"));
    const int chiefs = config->count;
    CORNU__TRY(add_job(config, cluster, "worker"));
    if (config->count == 0) return expected("at least one \"worker\" in \"cluster\"");
    return find_rank(config, json_object_get(root, "task"), chiefs);
}

CornuStatus cornu__tf_config_read(CornuTfConfig *config, const char *text)
{
    json_error_t error;
    *config = (CornuTfConfig){ .count = 0 };
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return cornu__fail(CORNU_ERR_ARGUMENT, "TF_CONFIG is no JSON: %s, at byte %d", error.text,
                           error.position);
    const CornuStatus status = read_config(config, root);
    json_decref(root);
    if (status) cornu__tf_config_clear(config);
    return status;
}

void cornu__tf_config_clear(CornuTfConfig *config)
{
    for (int i = 0; i < config->count; i++) cornu__release(config->workers[i]);
    cornu__release(config->workers);
    *config = (CornuTfConfig){ .count = 0 };
}
