/* Graphs of whole batches, in a file of their own: whoever records none needs no partitioning. */
#include "../device/device_internal.h"
#include "../device/processes/processes.h"
#include "graph_internal.h"

CornuStatus cornu_graph_set_whole_batch(CornuGraph *graph)
{
    CORNU__NEED(graph);
    const CornuDevice *device = graph->device;
    if (cornu_device_shards(device) == 1) return CORNU_OK;
    if (cornu_process_count(cornu_device_processes(device)) > 1)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "a graph of whole batches on the %d shards of "
                           "%d processes, expected shards of one process",
                           device->shards, cornu_process_count(cornu_device_processes(device)));
    graph->whole_batch = true;
    graph->partition = cornu__partition_laid;
    return CORNU_OK;
}
