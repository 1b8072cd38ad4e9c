/* Command lines of the examples: what is taken, what is refused and with which words. Statics of
 * options.c are called. */
#include "../../examples/cornu/common/options.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const models[] = { "mnist_cnn", "mnist_cnn_bn", "mnist_convnet", NULL };
static bool   show;
static double strength;
static OptionTexts layers;
static const Option extra[] = {
    { "layer", OPTION_TEXTS, &layers, "NAME", "shows a layer", 0, 0, NULL },
    { "show", OPTION_SWITCH, &show, "", "draw digits", 0, 0, NULL },
    { "strength", OPTION_NUMBER, &strength, "X", "of the effect", 0, 1, NULL },
    OPTION_END,
};
static const Program trainer = {
    .name = "mnist_cnn", .purpose = "Trains.", .groups = OPTIONS_ALL | OPTIONS_CLASSES,
    .models = models, .extra = extra,
};
static const Program reader = {
    .name = "predict", .purpose = "Predicts.", .groups = OPTIONS_MACHINE,
    .arguments = "MODEL IMAGE...", .least_arguments = 2,
};

static Options parsed;
static char    words[1000];        /* argv's texts */
static char    printed[8000];      /* what went to stdout and stderr */

/* Parses a command line written with blanks; catches what it prints. */
static int parse(const Program *program, const char *line)
{
    static char *argv[64];
    int argc = 0;
    argv[argc++] = (char *)program->name;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;

    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(NULL);
    const int out = dup(1), err = dup(2);
    dup2(fileno(file), 1);
    dup2(fileno(file), 2);
    parsed = (Options){ .epochs = 12, .batch_size = 128 };
    const int status = options_parse(&parsed, program, argc, argv);
    fflush(NULL);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    rewind(file);
    printed[fread(printed, 1, sizeof printed - 1, file)] = '\0';
    fclose(file);
    return status;
}

static void test_texts(void **state)
{
    char line[900] = "";
    (void)state;
    layers.count = 0;
    assert_int_equal(parse(&trainer, "--layer a --seed 1 --layer=b --layer a"), -1);
    assert_int_equal(layers.count, 3);
    assert_string_equal(layers.text[0], "a");
    assert_string_equal(layers.text[1], "b");
    assert_string_equal(layers.text[2], "a");
    layers.count = OPTION_MAX_TEXTS - 2;
    for (int i = 0; i < 3; i++) strcat(line, "--layer a ");
    assert_int_equal(parse(&trainer, line), 2);
    assert_non_null(strstr(printed, "--layer is given more than 64 times"));
    assert_int_equal(parse(&trainer, "--help"), 0);
    assert_non_null(strstr(printed, "shows a layer; may be repeated"));
}

static void test_defaults(void **state)
{
    (void)state;
    assert_int_equal(parse(&trainer, ""), -1);
    assert_string_equal(parsed.device, "cpu");
    assert_null(parsed.policy);
    assert_int_equal(parsed.shards, 0);
    assert_int_equal(parse(&trainer, "--device cpu --shards 12"), -1);
    assert_int_equal(parsed.shards, 12);
    assert_int_equal(parse(&trainer, "--device tpu:v3-8 --shards 1000"), -1);
    assert_int_equal(parsed.shards, 1000);
    assert_int_equal(parsed.threads, 0);
    assert_int_equal(parsed.epochs, 12);
    assert_int_equal(parsed.verbose, CORNU_AUTO);
    assert_null(parsed.save);
    assert_string_equal(printed, "");
}

static void test_values(void **state)
{
    (void)state;
    assert_int_equal(parse(&trainer, "--epochs 3 --batch-size=64 --model mnist_cnn_bn --seed=0 "
                           "--learning-rate 1e-3 --data /d --save=m.safetensors --verbose 2 "
                           "--threads 2 --limit 256 --show --strength=0.5 --steps-per-epoch 9 "
                           "--steps-per-execution 3 --load a=b --history h.json --tensorboard logs "
                           "--device reference --labels a,b"), -1);
    assert_int_equal(parsed.epochs, 3);
    assert_int_equal(parsed.batch_size, 64);
    assert_string_equal(parsed.model, "mnist_cnn_bn");
    assert_true(parsed.learning_rate == 1e-3);
    assert_string_equal(parsed.data, "/d");
    assert_string_equal(parsed.save, "m.safetensors");
    assert_string_equal(parsed.load, "a=b");
    assert_string_equal(parsed.history, "h.json");
    assert_string_equal(parsed.tensorboard, "logs");
    assert_int_equal(parsed.verbose, CORNU_LINES);
    assert_int_equal(parsed.threads, 2);
    assert_int_equal(parsed.limit, 256);
    assert_int_equal(parsed.steps_per_epoch, 9);
    assert_int_equal(parsed.steps_per_execution, 3);
    assert_string_equal(parsed.device, "reference");
    assert_string_equal(parsed.labels, "a,b");
    assert_true(show);
    assert_true(strength == 0.5);
    assert_int_equal(parse(&trainer, "--epochs 3 --epochs 4"), -1);
    assert_int_equal(parsed.epochs, 4);
}

static void test_arguments(void **state)
{
    (void)state;
    assert_int_equal(parse(&reader, "m.safetensors --threads 1 a.png -- --b.png -"), -1);
    assert_int_equal(parsed.argument_count, 4);
    assert_string_equal(parsed.arguments[1], "a.png");
    assert_string_equal(parsed.arguments[2], "--b.png");
    assert_string_equal(parsed.arguments[3], "-");
    assert_int_equal(parse(&reader, "m.safetensors"), 2);
    assert_non_null(strstr(printed, "expected MODEL IMAGE..., got 1 argument\n"));
    assert_int_equal(parse(&trainer, "stray"), 2);
    assert_non_null(strstr(printed, "unexpected argument \"stray\""));
}

static const struct { const char *line, *message; } refused[] = {
    { "--epoch 3", "unknown flag --epoch; did you mean --epochs?" },
    { "--bach-size=3", "unknown flag --bach-size; did you mean --batch-size?" },
    { "-epochs 3", "unknown flag -epochs; did you mean --epochs?" },
    { "--zzzzzzzz", "unknown flag --zzzzzzzz\n" },
    { "-e", "unknown flag -e" },
    { "--=3", "unknown flag --" },
    { "--model mnist_cn", "\"mnist_cn\", expected mnist_cnn, mnist_cnn_bn, mnist_convnet; "
                          "did you mean mnist_cnn?" },
    { "--model shakespeare", "\"shakespeare\", expected mnist_cnn" },
    { "--device cpv", "did you mean cpu?" },
    { "--policy bfloat16", "\"bfloat16\", expected float32, mixed_bfloat16, mixed_float16" },
    { "--policy flot32", "did you mean float32?" },
    { "--verbose 3", "\"3\", expected auto, 0, 1, 2" },
    { "--epochs", "--epochs needs a value, N" },
    { "--epochs=", "--epochs needs a value, N" },
    { "--save --load x", "--save needs a value, FILE" },
    { "--epochs 0", "--epochs is \"0\", expected a whole number from 1 to 1000000" },
    { "--epochs -1", "--epochs is \"-1\"" },
    { "--epochs 3x", "--epochs is \"3x\"" },
    { "--epochs 3.0", "--epochs is \"3.0\"" },
    { "--epochs 0x3", "--epochs is \"0x3\"" },
    { "--epochs 1e3", "--epochs is \"1e3\"" },
    { "--epochs +3", "--epochs is \"+3\"" },
    { "--epochs 99999999999999999999", "--epochs is" },
    { "--epochs ten", "--epochs is \"ten\"" },
    { "--threads 0", "--threads is \"0\", expected a whole number from 1 to 1024" },
    { "--threads=-2", "--threads is \"-2\"" },
    { "--device reference --shards 8", "--shards is \"8\", expected 1 on device reference" },
    { "--shards 1025", "--shards is \"1025\", expected a whole number from 1 to 1024" },
    { "--precision high", "--precision is \"high\", expected highest on device cpu" },
    { "--learning-rate 0", "--learning-rate is \"0\", expected a number from" },
    { "--learning-rate nan", "--learning-rate is \"nan\"" },
    { "--learning-rate inf", "--learning-rate is \"inf\"" },
    { "--learning-rate 1e-400", "--learning-rate is" },
    { "--learning-rate 0.1f", "--learning-rate is \"0.1f\"" },
    { "--help=me", "--help takes no value, got \"me\"" },
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const int status = parse(&trainer, refused[i].line);
        if (status != 2 || !strstr(printed, refused[i].message) ||
            !strstr(printed, "\nTry 'mnist_cnn --help'.\n"))
            fail_msg("%s: status %d, printed %s", refused[i].line, status, printed);
    }
    assert_int_equal(parse(&reader, "--epochs 3 a b"), 2);      /* a flag of others */
}

static void test_help(void **state)
{
    (void)state;
    assert_int_equal(parse(&trainer, "--epochs 5 --help"), 0);
    assert_non_null(strstr(printed, "usage: mnist_cnn [FLAG]...\nTrains.\n"));
    assert_non_null(strstr(printed, "  --epochs N                passes over the data "
                           "(default 5)\n"));
    assert_non_null(strstr(printed, "network: mnist_cnn, mnist_cnn_bn, mnist_convnet\n"));
    assert_non_null(strstr(printed, "--device NAME"));
    assert_non_null(strstr(printed, "device to run on: cpu, tpu, tpu:v2-8, tpu:v3-8,\n"
                           "                            tpu:v4-8, tpu:v5e-8, "));
    assert_non_null(strstr(printed, "precision policy: float32, mixed_bfloat16,\n"
                           "                            mixed_float16; default the device's\n"));
    for (const char *line = printed, *end; (end = strchr(line, '\n')); line = end + 1)
        if (end - line > 80) fail_msg("%.*s", (int)(end - line), line);
    assert_non_null(strstr(printed, "--verbose auto|0|1|2      silent"));
    assert_int_equal(parse(&reader, "--help"), 0);
    assert_non_null(strstr(printed, "usage: predict [FLAG]... MODEL IMAGE...\n"));
    assert_null(strstr(printed, "--epochs"));
    assert_int_equal(parse(&reader, "--version"), 0);
    assert_string_equal(printed, "Cornu " CORNU_VERSION "\n");
}

/* Fields of the library that the program has a flag for become that flag; others stay. */
static void test_messages_speak_of_flags(void **state)
{
    (void)state;
    static const struct { const char *message, *said; } cases[] = {
        { "a/b.gz is missing; .data must name a directory", "a/b.gz is missing; --data must name a "
          "directory" },
        { ".data = \"synthetic\" does without (.data or CORNU_DATA)",
          "--data synthetic does without (--data or CORNU_DATA)" },
        { "fit: .batch_size is 0", "fit: --batch-size is 0" },
        { "dense: .units is 0, in m.safetensors. Or .h5", "dense: .units is 0, in m.safetensors. "
          "Or .h5" },
        { "left out with .missing = CORNU_MISSING_DROPPED", "left out with .missing = "
          "CORNU_MISSING_DROPPED" },
        { "lies in x.data and ./data, .dat and .database", "lies in x.data and ./data, .dat and "
          ".database" },
        { ".data/mnist is missing", ".data/mnist is missing" },
        { "x: is bad (still pending: constructors fail until cornu_error_take() is called)",
          "x: is bad" },
        { "", "" }, { ".data = \"unfinished", "--data unfinished" },
    };
    char longer[2000];
    assert_int_equal(parse(&trainer, ""), -1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(options_translate(cases[i].message), cases[i].said);
    for (int i = 0; i < 1990; i++) longer[i] = ".data "[i % 6];
    longer[1990] = '\0';
    assert_in_range(strlen(options_translate(longer)), 900, 1023);
    assert_int_equal(parse(&reader, "a b"), -1);
    assert_string_equal(options_translate("fit: .batch_size is 0"), "fit: .batch_size is 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_values), cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_help),
        cmocka_unit_test(test_messages_speak_of_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
