/* Folders of JPEG files, read, decoded and put into batches by a data set, beside stb_image alone,
 * which decodes the same bytes from memory: what reading, checking, cropping and handing over cost.
 * The files are drawn here: noise whose amplitude falls with its frequency, as in photographs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../device/random.h"
#include "../../nn/cornu.h"
#include "bench.h"

#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#include <stb/stb_image.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#include <stb/stb_image_write.h>

enum { FILES = 96, BATCH = 8, QUALITY = 90, TARGET = 224, MOST_THREADS = 64, COLOURS = 3 };

static const struct { int height, width; } sizes[] = { { TARGET, TARGET }, { 375, 500 } };
enum { SIZES = sizeof sizes / sizeof *sizes };

typedef struct { unsigned char *bytes; int size, space; } Coded;

typedef struct {
    char           folder[64];
    int            height, width, threads;
    Coded          coded[FILES];
    CornuIterator *iterator;
    int64_t        epoch;
    bool           failed;         /* of a decoder; each thread only sets it */
} Pictures;

/* ---- Files ---- */

/* Bilinear between the points of a lattice of random heights, so many pixels apart. */
static float noise(const uint32_t *lattice, int apart, int row, int column)
{
    enum { SIDE = 64 };
    const int   y = row / apart, x = column / apart;
    const float v = (float)(row % apart) / (float)apart, u = (float)(column % apart) / (float)apart;
    float       corner[4];
    for (int i = 0; i < 4; i++)
        corner[i] = -0.5F +
                    0x1p-32F * (float)lattice[(y + i / 2) % SIDE * SIDE + (x + i % 2) % SIDE];
    const float top = corner[0] + (corner[1] - corner[0]) * u;
    return top + (corner[2] + (corner[3] - corner[2]) * u - top) * v;
}

static void draw(uint8_t *pixels, int height, int width, int number)
{
    enum { LATTICE = 64 * 64 };
    static const int   apart[] = { 64, 16, 4, 1 };
    static const float amplitude[] = { 200.0F, 80.0F, 40.0F, 14.0F };
    static uint32_t    lattice[COLOURS][LATTICE];
    for (uint32_t c = 0; c < COLOURS; c++)
        for (uint32_t i = 0; i < LATTICE / 4; i++)
            cornu_philox((uint64_t)number, (const uint32_t[4]){ i, c }, &lattice[c][4 * i]);
    for (int h = 0; h < height; h++)
        for (int w = 0; w < width; w++)
            for (int c = 0; c < COLOURS; c++) {
                float value = 128.0F;
                for (int k = 0; k < 4; k++)   /* colours differ in the coarse ones alone */
                    value += amplitude[k] * noise(lattice[k < 2 ? c : 0], apart[k], h, w);
                *pixels++ = (uint8_t)(value < 0.0F ? 0.0F : value > 255.0F ? 255.0F : value);
            }
}

/* The encoder hands over one byte at a time. */
static void put(void *context, void *bytes, int size)
{
    Coded *coded = context;
    if (coded->size + size > coded->space) {
        coded->space = 2 * (coded->size + size);
        coded->bytes = realloc(coded->bytes, (size_t)coded->space);
    }
    if (coded->bytes) memcpy(coded->bytes + coded->size, bytes, (size_t)size);
    coded->size += size;
}

/* Two folders, for classes, of files whose bytes stay in memory, too. */
static CornuStatus write_files(Pictures *pictures)
{
    char     path[96];
    const int height = pictures->height, width = pictures->width;
    uint8_t *pixels = malloc((size_t)(height * width * COLOURS));
    strcpy(pictures->folder, "/tmp/cornu-bench-XXXXXX");
    bool written = pixels && mkdtemp(pictures->folder);
    for (int class = 0; class < 2 && written; class++) {
        snprintf(path, sizeof path, "%s/%d", pictures->folder, class);
        written = mkdir(path, 0700) == 0;
    }
    for (int i = 0; i < FILES && written; i++) {
        Coded *coded = &pictures->coded[i];
        draw(pixels, height, width, i);
        snprintf(path, sizeof path, "%s/%d/%d.jpg", pictures->folder, i % 2, i);
        written = stbi_write_jpg_to_func(put, coded, width, height, COLOURS, pixels, QUALITY) &&
                  coded->bytes &&
                  cornu_file_write(path, coded->bytes, (size_t)coded->size) == CORNU_OK;
    }
    free(pixels);
    return written ? CORNU_OK
                   : cornu_error_set(CORNU_ERR_FILE, "%s: no files", pictures->folder);
}

/* ---- What is timed ---- */

static CornuStatus read_epoch(void *context)
{
    Pictures         *pictures = context;
    const CornuBatch *batch = NULL;
    CornuStatus       status = cornu_iterator_rewind(pictures->iterator, pictures->epoch++);
    bool              more = !status;
    while (more) {
        status = cornu_iterator_next(pictures->iterator, &batch);
        more = !status && batch;
    }
    return status;
}

typedef struct { Pictures *pictures; int thread; } Part;

static void *decode_part(void *argument)
{
    const Part *part = argument;
    Pictures   *pictures = part->pictures;
    for (int i = part->thread; i < FILES; i += pictures->threads) {
        int      width, height, channels;
        stbi_uc *pixels = stbi_load_from_memory(pictures->coded[i].bytes, pictures->coded[i].size,
                                                &width, &height, &channels, 0);
        if (!pixels) pictures->failed = true;
        stbi_image_free(pixels);
    }
    return NULL;
}

static CornuStatus decode_all(void *context)
{
    Pictures *pictures = context;
    pthread_t threads[MOST_THREADS];
    Part      parts[MOST_THREADS];
    int       started = 0;
    for (; started < pictures->threads; started++) {
        parts[started] = (Part){ pictures, started };
        if (pthread_create(&threads[started], NULL, decode_part, &parts[started])) break;
    }
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    return started == pictures->threads && !pictures->failed
         ? CORNU_OK : cornu_error_set(CORNU_ERR_MEMORY, "stb_image cannot decode");
}

/* ---- Measuring ---- */

static CornuStatus open_pictures(Pictures *pictures)
{
    const CornuStatus status = write_files(pictures);
    if (status) return status;
    CornuDataset *dataset = cornu_image_folder(pictures->folder, .image_size = { TARGET, TARGET },
                                               .crop_to_aspect_ratio = true);
    dataset = cornu_dataset_batch(dataset, BATCH, false);
    dataset = cornu_dataset_prefetch(cornu_dataset_parallel(dataset, pictures->threads),
                                     2 * pictures->threads);
    pictures->iterator = dataset ? cornu_iterator_begin(dataset, 0) : NULL;
    cornu_dataset_free(dataset);
    return pictures->iterator ? CORNU_OK : cornu_error_take();
}

static void close_pictures(Pictures *pictures)
{
    char command[96];
    cornu_iterator_free(pictures->iterator);
    for (int i = 0; i < FILES; i++) free(pictures->coded[i].bytes);
    snprintf(command, sizeof command, "rm -rf %s", pictures->folder);
    if (pictures->folder[0] && system(command)) fprintf(stderr, "%s is left\n", pictures->folder);
}

static CornuStatus measure(Bench *bench, int size, int threads)
{
    static BenchCase cases[2];
    Pictures pictures = { .height = sizes[size].height, .width = sizes[size].width,
                          .threads = threads };
    CornuStatus status = open_pictures(&pictures);
    cases[0] = (BenchCase){ .run = read_epoch, .context = &pictures };
    cases[1] = (BenchCase){ .run = decode_all, .context = &pictures };
    if (!status) status = bench_alternate(cases, 2, bench->seconds);
    if (!status)
        json_array_append_new(bench_rows(bench, "images"), json_pack(
            "{sisisisfsfsfsf}", "height", pictures.height, "width", pictures.width, "threads",
            threads, "images_per_s", FILES / bench_quantile(&cases[0], 0.5),
            "cpu_ms", 1e3 * cases[0].busy[cases[0].rounds / 2] / FILES,
            "stb_images_per_s", FILES / bench_quantile(&cases[1], 0.5),
            "stb_cpu_ms", 1e3 * cases[1].busy[cases[1].rounds / 2] / FILES));
    close_pictures(&pictures);
    return status;
}

CornuStatus bench_images(Bench *bench)
{
    CornuStatus status = CORNU_OK;
    for (int size = 0; size < SIZES; size++)
        for (int threads = 1; threads <= 2 && !status; threads++)
            status = measure(bench, size, threads);
    return status;
}

void bench_images_print(const Bench *bench)
{
    const json_t *rows = bench_rows(bench, "images");
    printf("\nimages: JPEG files read, decoded and, where they differ, cropped and resized to %d x "
           "%d,\nbeside stb_image alone, from memory; parts by wall time and by processor time\n"
           "  %-10s %7s %10s %10s %9s %9s %6s %6s\n", TARGET, TARGET, "pixels", "threads",
           "images/s", "stb's", "ms (cpu)", "stb's", "part", "(cpu)");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const double  rate = bench_number(row, "images_per_s"), ms = bench_number(row, "cpu_ms");
        const double  limit = bench_number(row, "stb_images_per_s");
        const double  least = bench_number(row, "stb_cpu_ms");
        printf("  %4.0f x %3.0f %7.0f %10.1f %10.1f %9.4f %9.4f %6.3f %6.3f\n",
               bench_number(row, "width"), bench_number(row, "height"),
               bench_number(row, "threads"), rate, limit, ms, least, rate / limit, least / ms);
    }
}
