#include "events_internal.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../device/memory_internal.h"
#include "file_internal.h"
#include "png_internal.h"

/* A message in the making. */
typedef struct {
    uint8_t *bytes;
    int      count, space;
    bool     failed;      /* no memory: what follows is dropped */
} Message;

struct CornuEvents {
    FILE    *stream;
    char    *path;
    Message  event, picture;
    uint8_t *pixels;
    int      pixel_space;
};

/* ---- Protobuf ---- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2 };

static void put(Message *m, const void *bytes, size_t size)
{
    if (m->failed || size == 0) return;
    if (size > (size_t)(INT32_MAX - m->count) ||
        cornu__reserve(&m->bytes, &m->space, m->count, (int)size, 1)) {
        m->failed = true;
        return;
    }
    memcpy(m->bytes + m->count, bytes, size);
    m->count += (int)size;
}

static int varint(uint8_t to[10], uint64_t value)
{
    int count = 0;
    do {
        to[count] = (uint8_t)(value & 0x7f);
        if ((value >>= 7) != 0) to[count] |= 0x80;
        count++;
    } while (value != 0);
    return count;
}

static void put_varint(Message *m, uint64_t value)
{
    uint8_t bytes[10];
    put(m, bytes, (size_t)varint(bytes, value));
}

/* Numbers are little-endian here and on the host. */
static void put_double(Message *m, double value) { put(m, &value, sizeof value); }

static void put_key(Message *m, int field, int kind)
{
    put_varint(m, (uint64_t)(field << 3 | kind));
}

static void put_number(Message *m, int field, int64_t value)
{
    put_key(m, field, VARINT);
    put_varint(m, (uint64_t)value);
}

static void put_bytes(Message *m, int field, const void *bytes, size_t size)
{
    put_key(m, field, BYTES);
    put_varint(m, size);
    put(m, bytes, size);
}

static void put_text(Message *m, int field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

/* Begins a message inside; returns what end_field wants. */
static int begin_field(Message *m, int field)
{
    put_key(m, field, BYTES);
    return m->count;
}

/* Ends it: its length, known now, moves in front. */
static void end_field(Message *m, int start)
{
    uint8_t   length[10];
    const int size = m->count - start, width = varint(length, (uint64_t)size);
    put(m, length, (size_t)width);
    if (m->failed) return;
    memmove(m->bytes + start + width, m->bytes + start, (size_t)size);
    memcpy(m->bytes + start, length, (size_t)width);
}

/* ---- Records ---- */

/* Castagnoli's CRC-32, bits reversed: RFC 3720, appendix B.4. */
static uint32_t crc32c(const uint8_t *bytes, size_t size)
{
    uint32_t crc = 0xFFFFFFFF;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
    }
    return ~crc;
}

static void write_checksum(FILE *stream, const void *bytes, size_t size)
{
    const uint32_t crc = crc32c(bytes, size), masked = (crc >> 15 | crc << 17) + 0xA282EAD8;
    fwrite(&masked, sizeof masked, 1, stream);
}

static CornuStatus write_record(CornuEvents *events)
{
    const Message *m = &events->event;
    const uint64_t length = (uint64_t)m->count;
    if (m->failed) return CORNU_ERR_MEMORY;
    fwrite(&length, sizeof length, 1, events->stream);
    write_checksum(events->stream, &length, sizeof length);
    fwrite(m->bytes, 1, (size_t)m->count, events->stream);
    write_checksum(events->stream, m->bytes, (size_t)m->count);
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

static Message *begin_event(CornuEvents *events)
{
    Message        *m = &events->event;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    m->count = 0;
    m->failed = false;
    put_key(m, EVENT_TIME, FIXED64);
    put_double(m, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    return m;
}

/* Where the messages around a tensor begin. */
typedef struct { int summary, value, tensor; } Around;

/* Begins an event with a tensor of this shape, whose values are to be put next. */
static Message *begin_tensor(CornuEvents *events, const char *tag, int64_t step, Around *around,
                             int dtype, int rank, const int64_t *extents)
{
    Message *m = begin_event(events);
    put_number(m, EVENT_STEP, step);
    around->summary = begin_field(m, EVENT_SUMMARY);
    around->value = begin_field(m, SUMMARY_VALUE);
    put_text(m, VALUE_TAG, tag);
    around->tensor = begin_field(m, VALUE_TENSOR);
    put_number(m, TENSOR_DTYPE, dtype);
    const int shape = begin_field(m, TENSOR_SHAPE);
    for (int i = 0; i < rank; i++) {
        const int extent = begin_field(m, 2);
        put_number(m, 1, extents[i]);
        end_field(m, extent);
    }
    end_field(m, shape);
    return m;
}

static CornuStatus end_tensor(CornuEvents *events, const Around *around, const char *plugin,
                              const char *content)
{
    Message *m = &events->event;
    end_field(m, around->tensor);
    const int metadata = begin_field(m, VALUE_METADATA), data = begin_field(m, METADATA_PLUGIN);
    put_text(m, PLUGIN_NAME, plugin);
    if (*content) put_text(m, PLUGIN_CONTENT, content);
    end_field(m, data);
    end_field(m, metadata);
    end_field(m, around->value);
    end_field(m, around->summary);
    return write_record(events);
}

CornuStatus cornu__events_scalar(CornuEvents *events, const char *tag, int64_t step, double value)
{
    const float number = (float)value;
    Around      around;
    Message    *m = begin_tensor(events, tag, step, &around, DT_FLOAT, 0, NULL);
    put_bytes(m, TENSOR_FLOAT, &number, sizeof number);
    return end_tensor(events, &around, "scalars", "");
}

enum { BUCKETS = 30 };

CornuStatus cornu__events_histogram(CornuEvents *events, const char *tag, int64_t step,
                                    const float *values, int64_t count)
{
    double low = INFINITY, high = -INFINITY, counts[BUCKETS] = { 0 };
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    if (low > high) return CORNU_OK;

    /* All in the last one where they are all the same. */
    const double width = (high - low) / BUCKETS;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        const double at = width > 0.0 ? floor((values[i] - low) / width) : BUCKETS;
        counts[at < BUCKETS ? (int)at : BUCKETS - 1] += 1.0;
    }
    Around   around;
    Message *m = begin_tensor(events, tag, step, &around, DT_DOUBLE, 2,
                              (const int64_t[]){ BUCKETS, 3 });
    const int content = begin_field(m, TENSOR_CONTENT);
    for (int i = 0; i < BUCKETS; i++) {
        put_double(m, low + width * i);
        put_double(m, i + 1 < BUCKETS ? low + width * (i + 1) : high);
        put_double(m, counts[i]);
    }
    end_field(m, content);
    return end_tensor(events, &around, "histograms", "");
}

static void append_bytes(void *context, void *bytes, int size)
{
    put(context, bytes, (size_t)size);
}

/* An image of f32 as a PNG in events->picture. */
static CornuStatus draw(CornuEvents *events, const float *image, int height, int width,
                        int channels)
{
    const int count = height * width * channels;
    CORNU__TRY(cornu__reserve(&events->pixels, &events->pixel_space, 0, count, 1));
    for (int i = 0; i < count; i++)   /* as tf.image.convert_image_dtype */
        events->pixels[i] = (uint8_t)fminf(fmaxf(image[i] * 255.5f, 0.0f), 255.0f);
    Message *picture = &events->picture;
    picture->count = 0;
    picture->failed = false;
    CORNU__TRY(cornu__png_write(width, height, channels, events->pixels, append_bytes, picture));
    return picture->failed ? CORNU_ERR_MEMORY : CORNU_OK;
}

CornuStatus cornu__events_images(CornuEvents *events, const char *tag, int64_t step,
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

    Around   around;
    Message *m = begin_tensor(events, tag, step, &around, DT_STRING, 1,
                              (const int64_t[]){ 2 + count });
    snprintf(text, sizeof text, "%d", width);
    put_text(m, TENSOR_STRING, text);
    snprintf(text, sizeof text, "%d", height);
    put_text(m, TENSOR_STRING, text);
    for (int64_t i = 0; i < count; i++) {
        const float *image = (const float *)images.data + i * size;
        CORNU__TRY(draw(events, image, height, width, channels));
        put_bytes(m, TENSOR_STRING, events->picture.bytes, (size_t)events->picture.count);
    }
    return end_tensor(events, &around, "images", "");
}

CornuStatus cornu__events_keras_model(CornuEvents *events, const char *tag, const char *json)
{
    Around   around;
    Message *m = begin_tensor(events, tag, 0, &around, DT_STRING, 0, NULL);
    put_text(m, TENSOR_STRING, json);
    return end_tensor(events, &around, "graph_keras_model", "1");
}

/* ---- The file ---- */

CornuStatus cornu__events_flush(CornuEvents *events)
{
    if (!fflush(events->stream) && !ferror(events->stream)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FILE, "%s: cannot be written: %s", events->path, strerror(errno));
}

void cornu__events_close(CornuEvents *events)
{
    if (!events) return;
    if (events->stream) fclose(events->stream);
    cornu__release(events->path);
    cornu__release(events->event.bytes);
    cornu__release(events->picture.bytes);
    cornu__release(events->pixels);
    cornu__release(events);
}

static CornuStatus open_file(CornuEvents *events, const char *folder)
{
    static atomic_int opened;
    char              host[65] = "localhost";
    const size_t      size = strlen(folder) + sizeof host + 100;
    gethostname(host, sizeof host - 1);
    events->path = cornu__allocate(size, 1);
    if (!events->path) return CORNU_ERR_MEMORY;
    snprintf(events->path, size, "%s/events.out.tfevents.%lld.%s.%ld.%d.v2", folder,
             (long long)time(NULL), host, (long)getpid(), atomic_fetch_add(&opened, 1));
    CORNU__TRY(cornu__file_folders(events->path));
    events->stream = fopen(events->path, "wbx");
    if (!events->stream)
        return cornu__fail(CORNU_ERR_FILE, "%s: cannot be written: %s", events->path,
                           strerror(errno));
    Message *m = begin_event(events);
    put_text(m, EVENT_VERSION, "brain.Event:2");
    const int source = begin_field(m, EVENT_SOURCE);
    put_text(m, 1, "cornu");
    end_field(m, source);
    CORNU__TRY(write_record(events));
    return cornu__events_flush(events);
}

CornuEvents *cornu__events_open(const char *folder)
{
    CornuEvents *events = cornu__allocate(1, sizeof *events);
    if (!events || open_file(events, folder) == CORNU_OK) return events;
    cornu__events_close(events);
    return NULL;
}
