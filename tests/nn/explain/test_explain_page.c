/* The page of a training step: what it says, how wide it is, which advice it gives. */
#include "../../../nn/explain/explain_internal.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * A step of three: a dense layer of 100 rows by (64, 10) on each of 4 shards, its gradients' sum
 * between them, and an update. Modelled 4 us on the MXU of which 95 percent are padding, 1 us on
 * the links, 1 us in memory.
 */
static const int       ops[] = { 0, 1, 2 };
static const CornuType types[] = { { CORNU_F32, { .rank = 2, .extent = { 100, 10 } } },
                                   { CORNU_F32, { .rank = 0 } } };
static const CornuExecutableStep steps[] = {
    { .name = "matmul+bias", .kind = "kernel", .kernel = "matmul", .scope = "dense_1", .ops = ops,
      .op_count = 1, .out = types, .out_count = 1, .per_shard = true, .flops = 128000,
      .bytes_read = 30000 },
    { .name = "all_reduce", .kind = "collective", .kernel = "", .scope = "dense_1/gradient",
      .ops = ops + 1, .op_count = 1, .out = types + 1, .out_count = 1 },
    { .name = "adam_update+and+a+name+that+is+much+too+long+for+its+column", .kind = "group",
      .kernel = "", .scope = "batch_normalization_17/gradient", .ops = ops + 2, .op_count = 1,
      .out = types + 1, .out_count = 1 },
};
static double         here_s[] = { 3e-3, 0.5e-3, 0.5e-3 };
enum { LINES = 40 };   /* of the overview, at most */

static CornuTpuOp     modelled[3];
static CornuTpuModel  tpu, doubled, shards[2];
static CornuExplanation page;

static void begin(bool emulated)
{
    const CornuTpuProfile *v3 = cornu_tpu_profile("v3-8");
    modelled[0] = (CornuTpuOp){ .product = { 1, 100, 64, 10 }, .passes = 1,
                                .cycles = { .folds = 1 }, .useful_macs = 64000,
                                .tiling = { .rows = 104, .blocks = 1, .bytes = 3 << 19 },
                                .use_padding = 0.05, .use_overlapped = 0.04, .use_no_overlap = 0.01,
                                .mxu_s = 4e-6, .seconds = 4e-6, .bound = CORNU_TPU_BOUND_MXU };
    modelled[1] = (CornuTpuOp){ .links_s = 1e-6, .link_bytes = 4000, .seconds = 1e-6,
                                .bound = CORNU_TPU_BOUND_LINKS };
    modelled[2] = (CornuTpuOp){ .hbm_s = 1e-6, .hbm_bytes = 5000, .seconds = 1e-6,
                                .bound = CORNU_TPU_BOUND_HBM };
    tpu = (CornuTpuModel){ .profile = v3, .slice = cornu_tpu_slice(v3, 4), .shards = 4,
                           .ops = modelled, .op_count = 3,
                           .mxu_s = 4e-6, .use_overlapped = 0.5, .links_s = 1e-6,
                           .device_s = 6e-6, .infeed_s = 1e-6, .step_s = 6e-6,
                           .device_bound = CORNU_TPU_BOUND_MXU, .bound = CORNU_TPU_BOUND_MXU };
    doubled = tpu;
    shards[0] = shards[1] = tpu;
    shards[0].shards = 1;
    page = (CornuExplanation){ .model = "net", .policy = "mixed_bfloat16",
                          .description = "a device",
                          .parameters = 660, .trainable = 650, .batch = 320,
                          .epoch_samples = 60000, .shards = 4,
                          .target = "class", .targets = 1,
                          .threads = 2, .statistics = { .flops = 1000000, .ops = 9, .kernels = 3 },
                          .memory = { .total = { 3000000, 5000000 }, .capacity = 16000000000,
                                      .uses[CORNU_USE_SLOTS] = { 2000000, 4000000 } },
                          .steps = steps, .step_count = 3, .here_s = here_s, .wall_s = 5e-3,
                          .runs = 5, .trains = true,
                          .config = { .others = true } };
    if (!emulated) return;
    page.tpu = &tpu;
    page.doubled = &doubled;
    page.by_shards[0] = &shards[0];
    page.by_shards[2] = &shards[1];
    page.by_profile[0] = &tpu;
}

/* Whether one of the lines has the text. */
static bool advised(const char *text)
{
    CornuAdvice advice[CORNU_EXPLAIN_ADVICE];
    const int count = cornu__explain_advise(&page, advice);
    for (int i = 0; i < count; i++)
        if (strstr(advice[i].text, text)) return true;
    return false;
}

static int advice_count(void)
{
    CornuAdvice advice[CORNU_EXPLAIN_ADVICE];
    return cornu__explain_advise(&page, advice);
}

/* Each rule speaks when its condition holds, and then alone. */
static void test_rules(void **state)
{
    static const CornuTpuProduct full = { 1, 100, 128, 96 };   /* three quarters of the columns */
    (void)state;
    begin(true);
    modelled[0].product = full;
    assert_int_equal(advice_count(), 0);

    doubled.use_overlapped = 0.509;
    assert_int_equal(advice_count(), 0);
    doubled.use_overlapped = 0.6;
    doubled.device_s = 9e-6;
    assert_true(advised("Batch 320 to 640 lifts MXU use from 50.0 to 60.0 percent; the device then "
                        "takes 0.014 instead of 0.019 us for a sample, modelled."));
    assert_int_equal(advice_count(), 1);
    begin(true);
    modelled[0].product = full;
    page.batch = 300;                     /* 75 rows for a shard, which fill 80 */
    assert_true(advised("A shard's 75 rows are padded to 80: a batch of 320"));
    assert_int_equal(advice_count(), 1);
    page.fixed_batch = 300;
    assert_true(advised("The model fixes its batch at 300: 75 rows of a shard are padded to 80. "));
    assert_int_equal(advice_count(), 1);
    page.fixed_batch = 0;
    page.batch = 320;
    modelled[0].passes = 6;
    assert_true(advised("MXU time 0.7 instead of 4.0 us"));
    assert_int_equal(advice_count(), 1);
    modelled[0].passes = 1;
    tpu.links_s = 3e-6;
    assert_true(advised("exchange takes 50 percent of the modelled device time"));
    assert_int_equal(advice_count(), 1);
    tpu.links_s = 1e-6;
    tpu.infeed_s = 7e-6;
    tpu.infeed_bytes = 320 * 784;
    assert_true(advised("Infeed is slower than the device, 0.007 against 0.006 ms: 784 bytes"));
    assert_int_equal(advice_count(), 1);
    tpu.infeed_s = 1e-6;
    tpu.dispatch_s = 500e-6;
    tpu.step_s = 506e-6;
    assert_true(advised("iterations_per_loop 1 to 100 takes the modelled step from 0.51 to 0.01 "
                        "ms. (Its constant is assumed for this profile.)"));
    assert_int_equal(advice_count(), 1);
    begin(false);
    page.statistics.fallbacks = 2;
    page.statistics.fell_back[CORNU_OP_SIN] = "sin";
    page.statistics.fell_back[CORNU_OP_ERF] = "erf";
    assert_true(advised("2 ops fell back to the reference kernels, which are slow: sin, erf."));
    assert_int_equal(advice_count(), 1);
    page.statistics.fallbacks = 3;        /* all: the reference device */
    assert_int_equal(advice_count(), 0);
}

/* 10 of 128 columns and 64 of 128 rows: 92.1875 and 50 percent are empty. Three layers are told of
 * one by one, the worst first, with the time of their gradients; the others are counted. */
static void test_padding(void **state)
{
    (void)state;
    CornuPadded padded[12];
    begin(true);
    assert_true(advised("dense_1: K = 64 is padded to 128 rows and N = 10 padded to 128 columns of "
                        "the MXU's tiles, which 50 and 8 percent fill; up to 128 outputs take no "
                        "longer. Its padding takes 95.0 percent of the MXU's time."));
    assert_int_equal(cornu__explain_padded(&page, padded, 12), 2);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(padded[i].layer, "dense_1");
        assert_int_equal(padded[i].axis, "KN"[i]);
        assert_int_equal(padded[i].extent, i ? 10 : 64);
        assert_int_equal(padded[i].next, 128);
        assert_true(fabs(padded[i].wasted_s - 3.8e-6) < 1e-15);   /* 95 percent of 4 us */
    }
    assert_int_equal(cornu__explain_padded(&page, padded, 1), 1);

    CornuTpuOp          many[6];
    CornuExecutableStep named[6];
    const char *scopes[] = { "a", "b", "c", "d", "encoder/e", "d/gradient" };
    for (int i = 0; i < 6; i++) {
        many[i] = modelled[0];
        named[i] = steps[0];
        named[i].scope = scopes[i];
        many[i].mxu_s = (i + 1) * 1e-6;
        many[i].product.k = 100;   /* 28 of 128 rows: less than a quarter */
    }
    tpu.ops = many;
    tpu.op_count = page.step_count = 6;
    tpu.mxu_s = 21e-6;
    page.steps = named;
    assert_int_equal(cornu__explain_padded(&page, padded, 12), 5);
    assert_string_equal(padded[0].layer, "d");                     /* 4 us, and 6 of its gradient */
    assert_true(fabs(padded[0].wasted_s - 0.95 * 10e-6) < 1e-15);
    assert_string_equal(padded[1].layer, "encoder/e");
    assert_string_equal(padded[4].layer, "a");
    assert_int_equal(advice_count(), 4);
    assert_true(advised("d: N = 10 is padded to 128 columns of the MXU's tiles, which 8 percent "
                        "fill; up to 128 outputs take no longer. Its padding takes 45.2 percent"));
    assert_true(advised("2 more layers pad tiles by more than a quarter, 13.6 percent of the MXU's "
                        "time."));
}

static char *print_by(void (*by)(const CornuExplanation *, FILE *))
{
    char  *text = NULL;
    size_t size = 0;
    FILE  *to = open_memstream(&text, &size);
    by(&page, to);
    fclose(to);
    return text;
}

static json_t *to_json(size_t flags)
{
    char   *text = cornu_explanation_to_json(&page);
    json_t *all = text ? json_loads(text, flags, NULL) : NULL;
    free(text);
    assert_non_null(all);
    return all;
}

static char *print(void) { return print_by(cornu__explain_print_all); }

static int expect_width(const char *text, size_t width)
{
    int lines = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1, lines++)
        if (strcspn(line, "\n") > width) fail_msg("%.*s", (int)strcspn(line, "\n"), line);
    return lines;
}

static void expect_texts(const char *text, const char *const *parts)
{
    for (; *parts; parts++)
        if (!strstr(text, *parts)) fail_msg("%s is not in\n%s", *parts, text);
}

/* ---- The overview ---- */

static void test_the_overview_is_one_screen(void **state)
{
    (void)state;
    enum { STEPS = 40 };
    CornuExecutableStep many[STEPS];
    double              seconds[STEPS];
    char                scopes[STEPS][24];
    begin(true);
    char *text = print_by(cornu__explain_print_overview);
    expect_texts(text, (const char *const[]){
        ("net: a training step takes 320 samples forward and back and updates 650\n"
         "parameters once: 9 ops, compiled to 3 steps, in mixed_bfloat16.\n"),
        "Measured here: 5.000 ms (the median of 5), 64000 samples/s, 0.2 GFLOP/s.\n",
        "  dense_1                              3.00        0.50      70.0          5.00\n",
        "  batch_normalization_17               0.00        0.50      10.0          1.00\n",
        "  between steps, and waiting                       1.00      20.0\n",
        "Memory-bound here: 0 percent of the time is in steps that do 10 operations or",
        "Modelled on a TPU v3-8: 0.01 ms, bound by mxu. Dispatch 0.00 ms, device 0.01 ms",
        ("Memory of a shard: at most 5.0 MB of 16000 MB of HBM (slots 4.0). VMEM: at most\n"
         "1.5 of 16 MiB (V) at once, in dense_1.\n"),
        "MXU: no product goes to it.\n",
        "To fit better:\n- dense_1: K = 64 is padded",
        "\n--all shows every step, other TPUs.\n", NULL });
    expect_width(text, CORNU_EXPLAIN_WIDTH);
    free(text);

    /* Many layers, and much advice: the rest is counted. */
    for (int i = 0; i < STEPS; i++) {
        many[i] = steps[0];
        snprintf(scopes[i], sizeof scopes[i], "layer_%d/gradient", i);
        many[i].scope = scopes[i];
        many[i].flops = 10 * (many[i].bytes_read + many[i].bytes_written);
        seconds[i] = 1e-4 * (i + 1);
    }
    page.steps = many;
    page.here_s = seconds;
    page.step_count = STEPS;
    page.wall_s = 0.1;
    page.target = "character";
    page.targets = 100;
    page.batch = 300;
    page.statistics.fallbacks = 2;
    page.tpu = NULL;
    page.statistics.fell_back[CORNU_OP_SIN] = "sin";
    text = print_by(cornu__explain_print_overview);
    expect_texts(text, (const char *const[]){
        "  layer_39                             0.00        4.00       4.0\n",
        "  layer_35                             0.00        3.60       3.6\n",
        "  35 others                            0.00       63.00      63.0\n",
        "Compute-bound here: 82 percent", "GFLOP/s, 300000\ncharacters/s.\n",
        "- 2 ops fell back to the reference kernels, which are slow: sin.\n",
        "\n--all shows every step.\n", NULL });
    assert_null(strstr(text, "layer_34 "));
    assert_true(1 + expect_width(text, CORNU_EXPLAIN_WIDTH) <= LINES);
    assert_null(strstr(text, "profiler"));
    free(text);
    page.clock = CORNU_CLOCK_DEVICE;
    text = print_by(cornu__explain_print_overview);
    assert_non_null(strstr(text, "(the median of 5, by the device profiler), "));
    assert_true(1 + expect_width(text, CORNU_EXPLAIN_WIDTH) <= LINES);
    free(text);
    text = print_by(cornu__explain_print_all);
    assert_non_null(strstr(text, "\ntimed by the device profiler: "));
    expect_width(text, 120);
    free(text);
    begin(true);
    page.batch = 300;
    tpu.links_s = 5e-6;
    tpu.infeed_s = 7e-6;
    tpu.dispatch_s = 500e-6;
    modelled[0].passes = 6;
    doubled.use_overlapped = 0.9;
    text = print_by(cornu__explain_print_overview);
    assert_true(1 + expect_width(text, CORNU_EXPLAIN_WIDTH) <= LINES);
    assert_non_null(strstr(text, "more pieces of advice.\n"));
    free(text);
}

/* ---- All of it ---- */

/* Each step has its row, with the mark of where it runs; columns say measured or modelled. */
static void test_the_page_of_an_emulated_device(void **state)
{
    (void)state;
    begin(true);
    page.statistics.flops = INT64_MAX / 1000;
    page.statistics.bytes_moved = INT64_MAX / 1000000;
    page.target = "character";
    page.targets = 100;
    tpu.device_s = 5.0;
    modelled[0].seconds = 9999e-6;
    char *text = print();
    expect_width(text, 120);
    for (const char *const *part = (const char *const[]){
             "net: 660 parameters, a training step of 320 samples", "emulated, mixed_bfloat16",
             "4 shards, 2 threads",
             "memory of a shard: now 3.0 MB of 16000 (other 0.0, weights 0.0, slots 2.0, ",
             "             at most 5.0 MB of 16000 (other 0.0, weights 0.0, slots 4.0, ",
             ("VMEM: at most 1.5 of 16 MiB (V) at once, in dense_1, matmul+bias 100x64x10: 1 block "
              "of 104 rows\n"),
             "measured here: 5.000 ms per step (the median of 5)",
             "modelled on v3-8:", "modelled: v3-8, one replica", "  0 * dense_1 ",
             "  1 = dense_1/grad ", "  2   batch_no..17/grad", "100x64x10", "scalar",
             " 64000 samples/s, 6400000 characters/s\n",
             "waiting", "in 188 steps", "\nv3-8        1 ", "\nv3-8        4 ", "\n- ", NULL };
         *part; part++)
        if (!strstr(text, *part)) fail_msg("%s is not in\n%s", *part, text);
    assert_null(strstr(text, "(8"));
    assert_null(strstr(text, "fell back"));
    free(text);
    page.statistics.fallbacks = 1;
    text = print();
    assert_non_null(strstr(text, "\n1 op fell back to the reference kernels\n"));
    free(text);
}

static void test_the_page_of_a_native_device(void **state)
{
    (void)state;
    begin(false);
    char *text = print();
    expect_width(text, 120);
    for (const char *const *part = (const char *const[]){
             "native", "measured here", "batch_no.._17/grad", " matmul ", "  75.0\n",
             "  12.5\n", NULL };
         *part; part++)
        if (!strstr(text, *part)) fail_msg("%s is not in\n%s", *part, text);
    assert_null(strstr(text, "odelled"));
    free(text);
}

/* What is exchanged is told of several processes alone; the second goes on into the next step. */
static void test_exchanges(void **state)
{
    (void)state;
    static const CornuExchangeEvent exchanges[] = {
        { .name = "reduce_scatter in adam", .begin_step = 0, .end_step = 1, .bytes_sent = 187000,
          .bytes_received = 93500, .begin_s = 10.0, .end_s = 10.0015 },
        { .name = "all_gather in adam", .begin_step = 1, .end_step = 0, .bytes_sent = 1000,
          .bytes_received = 2000, .begin_s = 11.0, .end_s = 11.25 },
        { .name = "all_reduce in loss", .begin_step = 1, .end_step = 1, .bytes_sent = 500,
          .bytes_received = 500, .begin_s = 12.0, .end_s = 12.001 },
    };
    for (int i = 0; i < 2; i++) {
        begin(i == 0);
        char *alone = print(), *line = print_by(cornu__explain_print_overview);
        assert_null(strstr(alone, "xchanged with"));
        assert_null(strstr(line, "processes"));
        free(alone), free(line);
        page.exchanges = (CornuExplainExchanges){ .processes = 3, .rank = 0, .own = 2, .shards = 4,
                                      .steps = steps, .exchanges = exchanges, .count = 3 };
        char *text = print();
        expect_width(text, 120);
        expect_texts(text, (const char *const[]){
            "In 3 processes, of which this one, rank 0, has 2 of 4 shards: ",
            "Exchanged with the other 2 processes by rank 0, which has 2 of 4 shards",
            "\n  0 kernel        1 collective       187.0         93.5    1.500  reduce_scatter in",
            ("\n  1 collective    0 kernel             1.0          2.0  250.000  all_gather in "
             "adam, until the next step\n"),
            ("\n  1 collective    1 collective         0.5          0.5    1.000  all_reduce in "
             "loss\n"), NULL });
        free(text);
        text = print_by(cornu__explain_print_overview);
        assert_true(expect_width(text, CORNU_EXPLAIN_WIDTH) < LINES);
        expect_texts(text, (const char *const[]){
            "sends 188.5 kB in 3 exchanges, 188.0 kB of it beside\nother steps.\n", NULL });
        free(text);
    }
    json_t *root = to_json(0);
    assert_int_equal(json_integer_value(json_object_get(root, "processes")), 3);
    const json_t *second = json_array_get(json_object_get(root, "exchanges"), 1);
    assert_string_equal(json_string_value(json_object_get(second, "name")), "all_gather in adam");
    assert_int_equal(json_integer_value(json_object_get(second, "end_step")), 0);
    assert_int_equal(json_integer_value(json_object_get(second, "bytes_received")), 2000);
    json_decref(root);
}

static void test_json(void **state)
{
    (void)state;
    begin(true);
    json_t *all = to_json(JSON_REJECT_DUPLICATES);
    assert_non_null(all);
    const json_t *first = json_array_get(json_object_get(all, "steps"), 0);
    const json_t *op = json_object_get(first, "modelled");
    assert_int_equal(json_array_size(json_object_get(all, "steps")), 3);
    assert_int_equal(json_array_size(json_object_get(all, "modelled")), 3);
    assert_int_equal(json_array_size(json_object_get(all, "advice")), advice_count());
    assert_int_equal(json_integer_value(json_object_get(op, "useful_macs")), 64000);
    assert_true(json_real_value(json_object_get(op, "mxu_s")) == 4e-6);
    assert_string_equal(json_string_value(json_object_get(op, "bound")), "mxu");
    const json_t *vmem = json_object_get(op, "vmem");
    assert_int_equal(json_integer_value(json_object_get(vmem, "rows")), 104);
    assert_int_equal(json_integer_value(json_object_get(vmem, "bytes")), 3 << 19);
    const json_t *memory = json_object_get(all, "memory_of_a_shard");
    const json_t *slots = json_object_get(memory, "slots");
    assert_int_equal(json_integer_value(json_object_get(memory, "capacity")), 16000000000);
    assert_int_equal(json_integer_value(json_object_get(slots, "now")), 2000000);
    assert_int_equal(json_integer_value(json_object_get(slots, "peak")), 4000000);
    assert_true(json_real_value(json_object_get(json_object_get(first, "measured"), "seconds")) ==
                3e-3);
    const json_t *measured = json_object_get(all, "measured");
    assert_string_equal(json_string_value(json_object_get(measured, "clock")), "wall clock");
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_the_overview_is_one_screen),
        cmocka_unit_test(test_the_page_of_an_emulated_device),
        cmocka_unit_test(test_the_page_of_a_native_device),
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
