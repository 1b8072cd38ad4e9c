/* Command lines of the programs, an argument per line; the first byte selects the program. */
#include "fuzz.h"

#include "../../examples/cornu/common/options.h"

enum { MOST = 64 };

static bool   flip;
static double zoom;
static const char *const models[] = { "mnist_cnn", "mnist_mlp", NULL };
static const Option extra[] = {
    { "flip", OPTION_SWITCH, &flip, "", "of images", 0, 0, NULL },
    { "zoom", OPTION_NUMBER, &zoom, "X", "of images", 0, 1, NULL },
    OPTION_END,
};
static const Program programs[] = {
    { .name = "trainer", .purpose = "Trains.", .groups = OPTIONS_ALL | OPTIONS_CLASSES,
      .models = models, .extra = extra },
    { .name = "predict", .purpose = "Predicts.", .groups = OPTIONS_MACHINE,
      .arguments = "MODEL IMAGE...", .least_arguments = 2 },
    { .name = "demo", .purpose = "Shows.", .groups = OPTIONS_THREADS, .arguments = "FOLDER",
      .least_arguments = 1 },
};

/* Discards what is printed; libFuzzer and the sanitizers keep their streams. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere) stdout = stderr = nowhere;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *argv[MOST + 1] = { "program" }, *text = calloc(size + 1, 1);
    int   argc = 1;
    if (!text || size < 1) {
        free(text);
        return 0;
    }
    memcpy(text, data + 1, size - 1);
    for (char *at = text; at && argc < MOST; argc++) {
        char *end = strchr(at, '\n');
        argv[argc] = at;
        if (end) *end = '\0';
        at = end ? end + 1 : NULL;
    }
    Options options = { .epochs = 12, .batch_size = 128 };
    if (options_parse(&options, &programs[data[0] % 3], argc, argv) < 0) {
        fuzz_expect(options.epochs >= 1 && options.batch_size >= 1 && options.threads >= 0,
                    "numbers in their ranges");
        for (int i = 0; i < options.argument_count; i++)
            fuzz_read(options.arguments[i], strlen(options.arguments[i]));
    }
    free(text);
    return 0;
}
