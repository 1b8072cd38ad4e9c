#include "clicks_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../device/memory_internal.h"
#include "../pipeline/dataset_internal.h"

/* ---- Mapped files ---- */

/* The file has no name, so that it goes when the program does. Its blocks are taken now: a full
 * file system would end the process when it touches a page of them later. */
static CornuStatus map(size_t bytes, void **memory)
{
    char        path[512];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/cornu-clicks-XXXXXX", folder && *folder ? folder : "/var/tmp");
    const int file = mkstemp(path);
    if (file < 0)
        return cornu__fail(CORNU_ERR_FILE, "%s: %s; TMPDIR names another folder", path,
                           strerror(errno));
    unlink(path);
    int   problem = posix_fallocate(file, 0, (off_t)bytes);
    void *mapped = problem ? MAP_FAILED
                 : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (!problem) problem = errno;
    close(file);
    if (mapped == MAP_FAILED)
        return cornu__fail(CORNU_ERR_FILE, "%s: no room for %zu bytes: %s; TMPDIR names another "
                           "folder", path, bytes, strerror(problem));
    *memory = mapped;
    return CORNU_OK;
}

static int64_t rows_of(const CornuClicks *clicks, int part)
{
    return part ? clicks->test_rows : clicks->train_rows;
}

/* Arrays of 4-byte elements one after the other: each feature, the numbers, the clicks. */
static char *array_of(const CornuClicks *clicks, int part, int number)
{
    const size_t rows = (size_t)rows_of(clicks, part);
    const size_t before = (size_t)number + (number > clicks->features ? (size_t)clicks->numbers - 1
                                                                      : 0);
    return (char *)clicks->memory[part] + before * rows * sizeof(float);
}

CornuStatus cornu__clicks_map(CornuClicks *clicks)
{
    for (int part = 0; part < 2; part++) {
        const int64_t rows = rows_of(clicks, part), each = clicks->features + clicks->numbers + 1;
        if (rows < 1)
            return cornu__fail(CORNU_ERR_DATA, "no rows for %s, expected more data",
                               part ? "testing" : "training");
        const size_t bytes = (size_t)rows * (size_t)each * sizeof(float);
        CORNU__TRY(map(bytes, &clicks->memory[part]));
        clicks->bytes[part] = bytes;
    }
    return CORNU_OK;
}

void cornu__clicks_set(CornuClicks *clicks, int part, int64_t row, const CornuClick *click)
{
    for (int f = 0; f < clicks->features; f++)
        ((int32_t *)(void *)array_of(clicks, part, f))[row] = click->ids[f];
    float *numbers = (float *)(void *)array_of(clicks, part, clicks->features);
    memcpy(numbers + row * clicks->numbers, click->numbers,
           (size_t)clicks->numbers * sizeof *numbers);
    ((float *)(void *)array_of(clicks, part, clicks->features + 1))[row] = click->click;
    *(part ? &clicks->test_clicks : &clicks->train_clicks) += click->click > 0.0f;
}

CornuStatus cornu__clicks_finish(CornuClicks *clicks)
{
    for (int part = 0; part < 2; part++) {
        CornuArray    arrays[CORNU_CLICK_FEATURES + 2];
        const int64_t rows = rows_of(clicks, part);
        const int     features = clicks->features;
        for (int f = 0; f < features; f++)
            arrays[f] = cornu_array(array_of(clicks, part, f), CORNU_I32, rows, 1);
        arrays[features] = cornu_array(array_of(clicks, part, features), CORNU_F32, rows,
                                       clicks->numbers);
        arrays[features + 1] = cornu_array(array_of(clicks, part, features + 1), CORNU_F32, rows,
                                           1);
        CornuDataset *data = cornu__dataset_borrow_arrays(arrays, features + 2, NULL);
        if (!data) return cornu_error_take();
        *(part ? &clicks->test : &clicks->train) = data;
    }
    return CORNU_OK;
}

void cornu_clicks_free(CornuClicks *clicks)
{
    if (!clicks) return;
    cornu_dataset_free(clicks->train);
    cornu_dataset_free(clicks->test);
    for (int part = 0; part < 2; part++)
        if (clicks->memory[part]) munmap(clicks->memory[part], clicks->bytes[part]);
    cornu__release(clicks);
}

/* ---- Numbers ---- */

/* Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014: the mixing
 * function of SplitMix64. */
static uint64_t mixed(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

double cornu__clicks_uniform(uint64_t seed, uint64_t kind, uint64_t number, uint64_t part)
{
    const uint64_t bits = mixed(mixed(mixed(mixed(seed) + kind) + number) + part);
    return (double)(bits >> 11) * 0x1p-53;
}

bool cornu__clicks_tests(uint64_t seed, int64_t row)
{
    return cornu__clicks_uniform(seed, 0, (uint64_t)row, 0) < 0.1;
}
