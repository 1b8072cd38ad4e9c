/* One record of a TFRecord file. */
#include "tfrecord_internal.h"

#include <stdio.h>
#include <string.h>

#include "../../device/files/file_internal.h"

bool cornu__record_head(const unsigned char *head, int64_t *length)
{
    const uint64_t stated = cornu__little_endian(head, 8);
    *length = stated > INT64_MAX ? INT64_MAX : (int64_t)stated;
    return cornu__little_endian(head + 8, 4) == cornu__crc32c_masked(head, 8);
}

CornuStatus cornu__record_check(const unsigned char *bytes, int64_t length)
{
    if (cornu__little_endian(bytes + length, 4) == cornu__crc32c_masked(bytes, (size_t)length))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "wrong checksum of its %lld bytes", (long long)length);
}

CornuStatus cornu__tfrecord_fail(const CornuTfrecords *records, CornuStatus status, int file,
                                 int64_t record, int64_t at)
{
    char what[CORNU_MESSAGE_SIZE / 2];
    if (status == CORNU_OK) return CORNU_OK;
    snprintf(what, sizeof what, "%.400s: record %lld at byte %lld",
             cornu__inputs_path(records->inputs, file), (long long)record, (long long)at);
    return cornu__fail_prefix(status, what);
}

CornuStatus cornu__tfrecord_element(const CornuTfrecords *records, const unsigned char *bytes,
                                    int64_t length, const CornuDataset *dataset, void *const *to)
{
    const int64_t most = dataset->type[0].shape.rank ? dataset->type[0].shape.extent[0] : 0;
    if (records->table.count)
        return cornu__example_parse(&records->table, bytes, (size_t)length, to);
    if (length > most)
        return cornu__fail(CORNU_ERR_FORMAT, "has %lld bytes, expected at most %lld, the "
                           ".record_length", (long long)length, (long long)most);
    memcpy(to[0], bytes, (size_t)length);
    memset((char *)to[0] + length, 0, (size_t)(most - length));
    *(int32_t *)to[1] = (int32_t)length;
    return CORNU_OK;
}
