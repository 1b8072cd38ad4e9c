/*
 * TF_CONFIG, by which users of Keras' MultiWorkerMirroredStrategy say who the processes are:
 *
 *     {"cluster": {"chief": ["a:2222"], "worker": ["b:2222", "c:2222"]},
 *      "task": {"type": "worker", "index": 0}}
 *
 * The chief, if there is one, is rank 0, and the workers follow in order. Evaluators are not part
 * of the group, and parameter servers are not supported.
 *
 * Source: tensorflow/python/distribute/cluster_resolver/tfconfig_cluster_resolver.py.
 */
#ifndef CORNU_DEVICE_TF_CONFIG_H
#define CORNU_DEVICE_TF_CONFIG_H

#include "../status_internal.h"

typedef struct {
    char **workers;   /* by rank: "host:port" */
    int    count, rank;
} CornuTfConfig;

/* CORNU_ERR_ARGUMENT for a string that is not such an object, naming what was expected. A config
 * without a cluster is of one process, without workers. Cleared after a failure, too. */
CornuStatus cornu__tf_config_read(CornuTfConfig *config, const char *text);
void        cornu__tf_config_clear(CornuTfConfig *config);

#endif
