#include "files.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static void must(int condition, const char *what)
{
    if (condition) return;
    perror(what);
    abort();
}

char folder[FILES_PATH];

int files_begin(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, FILES_PATH, "%s/cornu-test-XXXXXX", base && base[0] ? base : "/tmp");
    must(mkdtemp(folder) != NULL, folder);
    return 0;
}

int files_end(void **state)
{
    (void)state;
    char command[FILES_PATH + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    must(system(command) == 0, command);
    return 0;
}

const char *files_path(const char *from, const char *name)
{
    static char paths[4][FILES_PATH];
    static int  next;
    char       *path = paths[next++ % 4];
    must(snprintf(path, FILES_PATH, "%s/%s", from, name) < FILES_PATH, name);
    for (char *slash = path + strlen(from) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    return path;
}

void files_write(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    must(file != NULL, path);
    must(fwrite(bytes, 1, size, file) == size && fclose(file) == 0, path);
}

void files_write_gz(const char *path, const void *bytes, size_t size)
{
    gzFile file = gzopen(path, "wb");
    must(file != NULL, path);
    must(size == 0 || gzwrite(file, bytes, (unsigned)size) == (int)size, path);
    must(gzclose(file) == Z_OK, path);
}

static void put32(uint8_t *to, size_t value)
{
    for (int k = 0; k < 4; k++) to[k] = (uint8_t)(value >> (24 - 8 * k));
}

/* A chunk of a PNG file: length, name, data, checksum of the latter two. */
static void put_chunk(FILE *file, const char *name, const uint8_t *data, size_t size)
{
    uint8_t head[8], tail[4];
    put32(head, size);
    memcpy(head + 4, name, 4);
    put32(tail, crc32(crc32(0, head + 4, 4), data, (uInt)size));
    must(fwrite(head, 1, 8, file) == 8 && fwrite(data, 1, size, file) == size &&
         fwrite(tail, 1, 4, file) == 4, name);
}

void files_write_png(const char *path, int width, int height, int channels, const uint8_t *pixels)
{
    static const uint8_t colour_type[] = { 0, 0, 4, 2, 6 };
    const size_t row = (size_t)width * (size_t)channels, size = (row + 1) * (size_t)height;
    uLongf       used = compressBound(size);
    uint8_t      header[13] = { [8] = 8, [9] = colour_type[channels] };
    uint8_t     *rows = malloc(size), *packed = malloc(used);
    FILE        *file = fopen(path, "wb");
    must(rows && packed && file, path);
    for (size_t h = 0; h < (size_t)height; h++) {
        rows[h * (row + 1)] = 0;   /* no filter */
        memcpy(rows + h * (row + 1) + 1, pixels + h * row, row);
    }
    must(compress(packed, &used, rows, size) == Z_OK, path);
    put32(header, (size_t)width);
    put32(header + 4, (size_t)height);
    must(fwrite("\x89PNG\r\n\x1a\n", 1, 8, file) == 8, path);
    put_chunk(file, "IHDR", header, sizeof header);
    put_chunk(file, "IDAT", packed, used);
    put_chunk(file, "IEND", packed, 0);
    must(fclose(file) == 0, path);
    free(rows);
    free(packed);
}

size_t files_read(const char *path, void *bytes, size_t size)
{
    FILE *file = fopen(path, "rb");
    must(file != NULL, path);
    size_t got = fread(bytes, 1, size, file);
    fclose(file);
    return got;
}

int files_count(const char *from)
{
    DIR *directory = opendir(from);
    int  count = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (directory) closedir(directory);
    return count;
}

size_t files_idx_header(unsigned char *to, int rank, const int64_t *extents)
{
    memcpy(to, (unsigned char[]){ 0, 0, 8, (unsigned char)rank }, 4);
    for (int i = 0; i < rank; i++)
        for (int k = 0; k < 4; k++)
            to[4 + 4 * i + k] = (unsigned char)(extents[i] >> (24 - 8 * k));
    return 4 + 4 * (size_t)rank;
}

const char *files_real(const char *name)
{
    static char path[FILES_PATH];
    const char *data = getenv("CORNU_DATA");
    if (!data || !data[0]) return NULL;
    snprintf(path, sizeof path, "%s/%s", data, name);
    return access(path, R_OK) == 0 ? path : NULL;
}

void files_expect_image(const char *path, int channels, CornuType type, const uint8_t *pixels)
{
    CornuArray image;
    if (cornu_image_load(path, channels, &image) != CORNU_OK) fail_msg("%s", cornu_error_message());
    assert_true(cornu_type_equal(image.type, type));
    assert_memory_equal(image.data, pixels, cornu_type_bytes(type));
    free(image.data);
}
