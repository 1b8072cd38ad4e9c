/* Runs a target over files, as a program of libFuzzer does, for compilers without it. */
#include "fuzz.h"

__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

static void run_file(const char *path)
{
    struct stat info;
    FILE       *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &info) != 0) {
        perror(path);
        exit(1);
    }
    /* Exactly as large, so that a sanitizer detects reads beyond the end. */
    const size_t size = (size_t)info.st_size;
    uint8_t     *bytes = malloc(size ? size : 1);
    if (!bytes || fread(bytes, 1, size, file) != size) exit(1);
    fclose(file);
    fprintf(stderr, "Running: %s\n", path);
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
}

int main(int argc, char **argv)
{
    if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) run_file(argv[i]);
    return 0;
}
