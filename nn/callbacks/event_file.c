#include "event_file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../device/files/protobuf_internal.h"
#include "../../device/hash/crc32c_internal.h"
#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/open.h"
#include "../formats/output_internal.h"
#include "../formats/png_internal.h"

struct CornuEventFile {
    FILE        *stream;
    char        *path;
    CornuMessage event, picture;
    uint8_t     *pixels;
    int          pixel_space;
};

/* ---- Records ---- */

static void write_checksum(FILE *stream, const void *bytes, size_t size)
{
    const uint32_t masked = cornu__crc32c_masked(bytes, size);
    fwrite(&masked, sizeof masked, 1, stream);
}

static CornuStatus write_record(CornuEventFile *events)
{
    const CornuMessage *m = &events->event;
    const uint64_t length = m->size;
    if (m->failed) return CORNU_ERR_MEMORY;
    fwrite(&length, sizeof length, 1, events->stream);
    write_checksum(events->stream, &length, sizeof length);
    fwrite(m->bytes, 1, m->size, events->stream);
    write_checksum(events->stream, m->bytes, m->size);
    return CORNU_OK;
}

/* ---- Events ---- */

/* Fields of Event, Summary, Summary.Value, TensorProto, SummaryMetadata and its PluginData. */
enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SOURCE = 10 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4, TENSOR_FLOAT = 5,
       TENSOR_STRING = 8 };
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum { DT_FLOAT = 1, DT_DOUBLE = 2, DT_STRING = 7 };

static CornuMessage *begin_event(CornuEventFile *events)
{
    CornuMessage        *m = &events->event;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    m->size = 0;
    m->failed = false;
    cornu__put_double(m, EVENT_TIME, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    return m;
}

/* The beginnings of the messages around a tensor. */
typedef struct { size_t summary, value, tensor; } Around;

/* Begins an event with a tensor of this shape; the values come next. */
static CornuMessage *begin_tensor(CornuEventFile *events, const char *tag, int64_t step,
                                  Around *around, int dtype, int rank, const int64_t *extents)
{
    CornuMessage *m = begin_event(events);
    cornu__put_number(m, EVENT_STEP, step);
    around->summary = cornu__begin_field(m, EVENT_SUMMARY);
    around->value = cornu__begin_field(m, SUMMARY_VALUE);
    cornu__put_text(m, VALUE_TAG, tag);
    around->tensor = cornu__begin_field(m, VALUE_TENSOR);
    cornu__put_number(m, TENSOR_DTYPE, dtype);
    const size_t shape = cornu__begin_field(m, TENSOR_SHAPE);
    for (int i = 0; i < rank; i++) {
        const size_t extent = cornu__begin_field(m, 2);
        cornu__put_number(m, 1, extents[i]);
        cornu__end_field(m, extent);
    }
    cornu__end_field(m, shape);
    return m;
}

static CornuStatus end_tensor(CornuEventFile *events, const Around *around, const char *plugin,
                              const char *content)
{
    CornuMessage *m = &events->event;
    cornu__end_field(m, around->tensor);
    const size_t metadata = cornu__begin_field(m, VALUE_METADATA);
    const size_t data = cornu__begin_field(m, METADATA_PLUGIN);
    cornu__put_text(m, PLUGIN_NAME, plugin);
    if (*content) cornu__put_text(m, PLUGIN_CONTENT, content);
    cornu__end_field(m, data);
    cornu__end_field(m, metadata);
    cornu__end_field(m, around->value);
    cornu__end_field(m, around->summary);
    return write_record(events);
}

CornuStatus cornu__event_file_scalar(CornuEventFile *events, const char *tag, int64_t step,
                                     double value)
{
    const float   number = (float)value;
    Around        around;
    CornuMessage *m = begin_tensor(events, tag, step, &around, DT_FLOAT, 0, NULL);
    cornu__put_bytes(m, TENSOR_FLOAT, &number, sizeof number);
    return end_tensor(events, &around, "scalars", "");
}

enum { BUCKETS = 30 };

CornuStatus cornu__event_file_histogram(CornuEventFile *events, const char *tag, int64_t step,
                                        const float *values, int64_t count)
{
    double low = INFINITY, high = -INFINITY, counts[BUCKETS] = { 0 };
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    if (low > high) return CORNU_OK;

    /* If all values are equal, all are in the last bucket. */
    const double width = (high - low) / BUCKETS;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        const double at = width > 0.0 ? floor((values[i] - low) / width) : BUCKETS;
        counts[at < BUCKETS ? (int)at : BUCKETS - 1] += 1.0;
    }
    Around        around;
    CornuMessage *m = begin_tensor(events, tag, step, &around, DT_DOUBLE, 2,
                                   (const int64_t[]){ BUCKETS, 3 });
    const size_t content = cornu__begin_field(m, TENSOR_CONTENT);
    for (int i = 0; i < BUCKETS; i++) {
        const double row[] = { low + width * i,
                               i + 1 < BUCKETS ? low + width * (i + 1) : high, counts[i] };
        cornu__put(m, row, sizeof row);
    }
    cornu__end_field(m, content);
    return end_tensor(events, &around, "histograms", "");
}

static void append_bytes(void *context, void *bytes, int size)
{
    cornu__put(context, bytes, (size_t)size);
}

/* Encodes an f32 image as a PNG in events->picture. */
static CornuStatus encode_image(CornuEventFile *events, const float *image, int height, int width,
                        int channels)
{
    const int count = height * width * channels;
    CORNU__TRY(cornu__reserve(&events->pixels, &events->pixel_space, 0, count, 1));
    for (int i = 0; i < count; i++)   /* as tf.image.convert_image_dtype */
        events->pixels[i] = (uint8_t)fminf(fmaxf(image[i] * 255.5f, 0.0f), 255.0f);
    CornuMessage *picture = &events->picture;
    picture->size = 0;
    picture->failed = false;
    CORNU__TRY(cornu__png_write(width, height, channels, events->pixels, append_bytes, picture));
    return picture->failed ? CORNU_ERR_MEMORY : CORNU_OK;
}

CornuStatus cornu__event_file_images(CornuEventFile *events, const char *tag, int64_t step,
                                     CornuArray images)
{
    enum { MOST_IMAGES = 3, MOST_BYTES = 1 << 28 };
    const int64_t *extent = images.type.shape.extent;
    const int64_t  count = extent[0] < MOST_IMAGES ? extent[0] : MOST_IMAGES;
    const int64_t  size = extent[1] * extent[2] * extent[3];
    const int      height = (int)extent[1], width = (int)extent[2], channels = (int)extent[3];
    char           text[24];
    if (size > MOST_BYTES)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: an image of %lld bytes, expected at most %d",
                           tag, (long long)size, MOST_BYTES);

    Around        around;
    CornuMessage *m = begin_tensor(events, tag, step, &around, DT_STRING, 1,
                                   (const int64_t[]){ 2 + count });
    snprintf(text, sizeof text, "%d", width);
    cornu__put_text(m, TENSOR_STRING, text);
    snprintf(text, sizeof text, "%d", height);
    cornu__put_text(m, TENSOR_STRING, text);
    for (int64_t i = 0; i < count; i++) {
        const float *image = (const float *)images.data + i * size;
        CORNU__TRY(encode_image(events, image, height, width, channels));
        cornu__put_bytes(m, TENSOR_STRING, events->picture.bytes, events->picture.size);
    }
    return end_tensor(events, &around, "images", "");
}

CornuStatus cornu__event_file_keras_model(CornuEventFile *events, const char *tag, const char *json)
{
    Around        around;
    CornuMessage *m = begin_tensor(events, tag, 0, &around, DT_STRING, 0, NULL);
    cornu__put_text(m, TENSOR_STRING, json);
    return end_tensor(events, &around, "graph_keras_model", "1");
}

/* ---- The file ---- */

CornuStatus cornu__event_file_flush(CornuEventFile *events)
{
    if (!fflush(events->stream) && !ferror(events->stream)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FILE, "%s: cannot be written: %s", events->path, strerror(errno));
}

void cornu__event_file_close(CornuEventFile *events)
{
    if (!events) return;
    if (events->stream) fclose(events->stream);
    cornu__release(events->path);
    cornu__release(events->event.bytes);
    cornu__release(events->picture.bytes);
    cornu__release(events->pixels);
    cornu__release(events);
}

static CornuStatus open_file(CornuEventFile *events, const char *folder)
{
    static atomic_int opened;
    char              host[65] = "localhost";
    const size_t      size = strlen(folder) + sizeof host + 100;
    gethostname(host, sizeof host - 1);
    events->path = cornu__allocate(size, 1);
    if (!events->path) return CORNU_ERR_MEMORY;
    snprintf(events->path, size, "%s/events.out.tfevents.%lld.%s.%ld.%d.v2", folder,
             (long long)time(NULL), host, (long)getpid(), atomic_fetch_add(&opened, 1));
    CORNU__TRY(cornu__output_folders_above(events->path));
    const int file = cornu__output_open(events->path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    events->stream = file < 0 ? NULL : fdopen(file, "wb");
    if (!events->stream && file >= 0) close(file);
    if (!events->stream)
        return cornu__fail(CORNU_ERR_FILE, "%s: cannot be written: %s", events->path,
                           strerror(errno));
    if (cornu__output_writes()) cornu__log(CORNU_LOG_INFO, "writing %s", events->path);
    CornuMessage *m = begin_event(events);
    cornu__put_text(m, EVENT_VERSION, "brain.Event:2");
    const size_t source = cornu__begin_field(m, EVENT_SOURCE);
    cornu__put_text(m, 1, "cornu");
    cornu__end_field(m, source);
    CORNU__TRY(write_record(events));
    return cornu__event_file_flush(events);
}

CornuEventFile *cornu__event_file_open(const char *folder)
{
    CornuEventFile *events = cornu__allocate(1, sizeof *events);
    if (!events || open_file(events, folder) == CORNU_OK) return events;
    cornu__event_file_close(events);
    return NULL;
}
