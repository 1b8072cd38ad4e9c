/* Files for tests: a temporary folder, plain and compressed files, idx files. */
#ifndef CORNU_TESTS_DATASETS_FILES_H
#define CORNU_TESTS_DATASETS_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "../../datasets/images/image.h"

enum { FILES_PATH = 512 };

/* A temporary folder, created by cmocka's set-up and removed with its contents by the teardown. */
extern char folder[FILES_PATH];
int         files_begin(void **state);
int         files_end(void **state);

/* from/name, creating the folders between. The string is valid until the fourth call from now. */
const char *files_path(const char *from, const char *name);

void files_write(const char *path, const void *bytes, size_t size);
void files_write_gz(const char *path, const void *bytes, size_t size);

/* Writes 8-bit pixels (height, width, channels) as a PNG: grey, grey and alpha, RGB, RGBA. */
void files_write_png(const char *path, int width, int height, int channels, const uint8_t *pixels);

/* Fails the test unless the image file has these pixels when it is loaded with so many channels. */
void files_expect_image(const char *path, int channels, CornuType type, const uint8_t *pixels);

/* Reads a file of at most size bytes; returns its length. */
size_t files_read(const char *path, void *bytes, size_t size);

/* The number of files in a folder; 0 if it does not exist. */
int files_count(const char *from);

/* Writes an idx header for u8 of 1 to 4 extents; returns its length. */
size_t files_idx_header(unsigned char *to, int rank, const int64_t *extents);

/* $CORNU_DATA/name; NULL if the real files are not there. */
const char *files_real(const char *name);

#endif
