/* Files of a server that behaves or misbehaves: the same bytes, or a message with address and
 * status, in bounded time, memory and cache. */
#define _DEFAULT_SOURCE    /* setenv */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "../../../datasets/arrays/npy.h"
#include "../../../datasets/arrow/parquet.h"
#include "../../../datasets/images/image_folder.h"
#include "../../../datasets/pipeline/iterator.h"
#include "../../../datasets/records/tfrecord.h"
#include "../../../datasets/remote/remote_internal.h"
#include "../../../datasets/sound/sound.h"
#include "../../../datasets/tables/table.h"
#include "../../../device/log.h"
#include "../../expect.h"
#include "../files.h"
#include "served.h"
#include "server.h"

/* ---- What is read ---- */

static void servers_that_can_be_read(void **state)
{
    (void)state;
    NEED_CURL();
    static const char *const behaviours[] = { "ranges", "whole", "undated", "dated", "flaky", "cut",
                                              "moved", "longer" };
    for (size_t i = 0; i < sizeof behaviours / sizeof *behaviours; i++) {
        server_forget_log();
        served_expect_whole(behaviours[i]);
    }
    CornuInput none = served_open(server_url("ranges", "none"));
    assert_int_equal(none.size, 0);
    cornu__input_close(&none);
}

/* strtok has one place for all threads, and it is the program's. */
static void programs_keep_their_strtok(void **state)
{
    (void)state;
    NEED_CURL();
    char words[] = "one two";
    assert_string_equal(strtok(words, " "), "one");
    served_expect_whole("ranges");
    assert_string_equal(strtok(NULL, " "), "two");
}

/* A connection that ends in the middle goes on where it ended. */
static void transfers_go_on(void **state)
{
    (void)state;
    NEED_CURL();
    CornuInput input = served_open(server_url("cut", "a"));
    served_expect(&input, 2 * SERVED_PART, 200000);
    cornu__input_close(&input);
    assert_non_null(strstr(server_log(), "GET /cut/a bytes=0-0\n"));
    char line[100];
    for (int i = 0; i < 4; i++) {
        snprintf(line, sizeof line, "GET /cut/a bytes=%d-3000000\n", 2 * SERVED_PART + i * 50001);
        assert_non_null(strstr(server_log(), line));
    }
}

/* ---- What is refused ---- */

static void servers_that_misbehave(void **state)
{
    (void)state;
    NEED_CURL();
    static const struct { const char *behaviour; bool opens; CornuStatus status; const char *text; }
    cases[] = {
        { "404", false, CORNU_ERR_FILE, "the server answered 404 (not found)" },
        { "403", false, CORNU_ERR_FILE, "the server answered 403 (forbidden)" },
        { "401", false, CORNU_ERR_FILE, "the server answered 401 (needs credentials)" },
        { "500", false, CORNU_ERR_FILE, "the server answered 500 (internal error)" },
        { "302", false, CORNU_ERR_FILE, "the server answered 302 (expected 200 or 206)" },
        { "204", false, CORNU_ERR_FILE, "the server answered 204 (expected 200 or 206)" },
        { "circle", false, CORNU_ERR_FILE, "redirects" },
        { "header", false, CORNU_ERR_FORMAT, "header has more than" },
        { "endless", false, CORNU_ERR_UNSUPPORTED, "does not say how many bytes it has" },
        { "shifted", false, CORNU_ERR_FILE, "answered 206, bytes 1 to 1, for byte 0" },
        { "changed", true, CORNU_ERR_FILE, "it was changed while being read" },
        { "grown", true, CORNU_ERR_FILE, "it was changed while being read" },
        { "vanished", true, CORNU_ERR_FILE, "it was changed while being read" },
        { "never", true, CORNU_ERR_FILE, "" },
        { "stalled", true, CORNU_ERR_FILE, "nothing came for 1 seconds" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuInput    input;
        unsigned char got[100];
        server_forget_log();
        CornuStatus status = cornu__input_open_any(&input, server_url(cases[i].behaviour, "a"));
        assert_int_equal(status == CORNU_OK, cases[i].opens);
        for (int64_t part = 2; !status && part >= 0; part--)
            status = cornu__input_read(&input, part * SERVED_PART, got, sizeof got);
        expect_error(status, cases[i].status, cases[i].text);
        assert_null(strstr(cornu_error_message(), "secret"));
        cornu__input_close(&input);
    }
    server_forget_log();
    CornuInput input;
    cornu__input_open_any(&input, server_url("404", "a"));
    assert_int_equal(server_requests(), 1);   /* it will not come */
}

static void addresses_that_are_none(void **state)
{
    (void)state;
    NEED_CURL();
    CornuInput input;
    char       address[FILES_PATH + 100];
    expect_error(cornu__input_open_any(&input, "http://127.0.0.1:1/a"), CORNU_ERR_FILE, "connect");
    expect_error(cornu__input_open_any(&input, "http://a\nurl = b"), CORNU_ERR_ARGUMENT,
                 "the address has character 10, at byte 8");
    expect_error(cornu__input_open_any(&input, "gs://bucket"), CORNU_ERR_ARGUMENT,
                 "expected gs://BUCKET/NAME");
    expect_error(cornu__input_open_any(&input, "s3:///name"), CORNU_ERR_ARGUMENT,
                 "expected s3://BUCKET/NAME");
    /* Nothing in an address is a setting of curl, or a command. */
    snprintf(address, sizeof address, "http://127.0.0.1:%d/ranges/a\"$(touch%%20%s/x)'\\",
             server_port(), folder);
    expect_error(cornu__input_open_any(&input, address), CORNU_ERR_FILE, "");
    assert_int_not_equal(access(files_path(folder, "x"), F_OK), 0);
    setenv("PATH", folder, 1);
    expect_error(cornu__input_open_any(&input, server_url("ranges", "a")), CORNU_ERR_UNSUPPORTED,
                 "is read by curl, which is not installed");
}

/* ---- Secrets ---- */

static char logged[1 << 16];

static void log_line(void *context, CornuLogLevel level, const char *message)
{
    const size_t used = strlen(logged);
    (void)context, (void)level;
    snprintf(logged + used, sizeof logged - used, "%s\n", message);
}

static void secrets_are_not_shown(void **state)
{
    (void)state;
    NEED_CURL();
    char address[300], shown[CORNU__SHOWN];
    cornu__remote_shown("https://me:password@host/a/b.npy?X-Amz-Signature=1#x", shown);
    assert_string_equal(shown, "https://host/a/b.npy");
    cornu__remote_shown("gs://bucket/a?b@c", shown);
    assert_string_equal(shown, "gs://bucket/a?b@c");
    CornuInputs *inputs = cornu__inputs_create();
    cornu_set_log(CORNU_LOG_INFO, log_line, NULL);
    snprintf(address, sizeof address, "http://me:letters@127.0.0.1:%d/query/a?secret=letters",
             server_port());
    expect_ok(cornu__inputs_add(inputs, address));
    snprintf(address, sizeof address, "http://127.0.0.1:%d/query/absent?secret=letters",
             server_port());
    expect_error(cornu__inputs_add(inputs, address), CORNU_ERR_FILE,
                 "/query/absent: the server answered 404");
    assert_null(strstr(cornu_error_message(), "letters"));
    assert_null(strstr(cornu__inputs_path(inputs, 0), "letters"));
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
    assert_null(strstr(logged, "letters"));
    assert_non_null(strstr(logged, "/query/a: 3000001 bytes, in parts"));
    cornu__inputs_free(inputs);
}

/* ---- Buckets ---- */

static void write_program(const char *name, const char *text)
{
    char path[FILES_PATH];
    snprintf(path, sizeof path, "%s", files_path(folder, name));
    files_write(path, text, strlen(text));
    chmod(path, 0755);
}

/* Programs in place of those of the clouds, found first. */
static void use_programs(const char *gcloud, const char *aws)
{
    char path[FILES_PATH + 100];
    if (gcloud) write_program("programs/gcloud", gcloud);
    if (aws) write_program("programs/aws", aws);
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", files_path(folder, "programs"));
    setenv("PATH", path, 1);
}

static void use_servers(const char *behaviour)
{
    char endpoint[100];
    snprintf(endpoint, sizeof endpoint, "127.0.0.1:%d%s%s/", server_port(), behaviour[0] ? "/" : "",
             behaviour);
    setenv("STORAGE_EMULATOR_HOST", endpoint, 1);
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%d", server_port());
    setenv("AWS_ENDPOINT_URL", endpoint, 1);
}

static void buckets(void **state)
{
    (void)state;
    NEED_CURL();
    static const char *const given[] = { "gs://bucket/a", "s3://bucket/a" };
    use_servers("");
    for (int i = 0; i < 2; i++) {
        CornuInput input = served_open(given[i]);
        served_expect(&input, 0, SERVED_SIZE);
        cornu__input_close(&input);
    }
    server_file("%C3%A9%20%2Bx", served_bytes, 77);
    CornuInput input = served_open("gs://bucket/\xC3\xA9 +x");
    assert_int_equal(input.size, 77);
    cornu__input_close(&input);
}

static void credentials(void **state)
{
    (void)state;
    NEED_CURL();
    char aws[300];
    CornuInput input;
    use_servers("");
    use_programs("#!/bin/sh\necho \"no account: log in\" >&2\nexit 1\n", NULL);
    expect_error(cornu__input_open_any(&input, "gs://closed/a"), CORNU_ERR_FILE,
                 "needs credentials, and gcloud gives none: no account: log in");
    use_programs("#!/bin/sh\n[ \"$*\" = 'auth print-access-token' ] && echo letters\n", NULL);
    input = served_open("gs://closed/a");
    served_expect(&input, 0, SERVED_SIZE);
    cornu__input_close(&input);
    use_programs("#!/bin/sh\necho others\n", NULL);
    expect_error(cornu__input_open_any(&input, "gs://closed/a"), CORNU_ERR_FILE,
                 "the server answered 403 (forbidden)");
    snprintf(aws, sizeof aws, "#!/bin/sh\n[ \"$3\" = s3://closed/a ] && echo "
             "'http://127.0.0.1:%d/query/a?secret=letters'\n", server_port());
    use_programs(NULL, aws);
    input = served_open("s3://closed/a");
    served_expect(&input, 0, SERVED_SIZE);
    cornu__input_close(&input);
    expect_error(cornu__input_open_any(&input, "s3://closed/b"), CORNU_ERR_FILE,
                 "needs credentials, and aws gives none");
    use_programs(NULL, "#!/bin/sh\necho 'not an address'\n");
    expect_error(cornu__input_open_any(&input, "s3://closed/a"), CORNU_ERR_FILE,
                 "needs credentials, and what aws prints is none");
}

static void patterns(void **state)
{
    (void)state;
    NEED_CURL();
    static const char *const given[] = { "gs://bucket/b/x-*", "s3://bucket/b/x-[12]" };
    use_servers("");
    server_file("b/x-1", served_bytes, 11);
    server_file("b/x-2", served_bytes, 12);
    for (int i = 0; i < 2; i++) {
        CornuInputs *inputs = cornu__inputs_create();
        expect_ok(cornu__inputs_match(inputs, given[i]));
        assert_int_equal(cornu__inputs_count(inputs), 2);
        for (int k = 0; k < 2; k++) assert_int_equal(cornu__inputs_size(inputs, k), 11 + k);
        assert_non_null(strstr(cornu__inputs_path(inputs, 0), "://bucket/b/x-1"));
        cornu__inputs_free(inputs);
    }
    CornuInputs *inputs = cornu__inputs_create();
    expect_error(cornu__inputs_match(inputs, "gs://bucket/c*"), CORNU_ERR_DATA,
                 "gs://bucket/c*: no object matches this pattern");
    expect_error(cornu__inputs_match(inputs, "gs://bucket/circle*"), CORNU_ERR_FORMAT,
                 "gs://bucket/circle*: the server's listing does not end");
    expect_error(cornu__inputs_match(inputs, "s3://bucket/circle*"), CORNU_ERR_FORMAT,
                 "s3://bucket/circle*: the server's listing does not end");
    char pattern[200];
    snprintf(pattern, sizeof pattern, "http://127.0.0.1:%d/ranges/b/x-{1..2}", server_port());
    expect_ok(cornu__inputs_match(inputs, pattern));
    assert_int_equal(cornu__inputs_count(inputs), 2);
    cornu__inputs_free(inputs);
}

/* ---- Data sets ---- */

static void npy(void **state)
{
    (void)state;
    NEED_CURL();
    static char file[128 + 4000];
    memset(file, ' ', 128);
    snprintf(file + 10, 118, "{'descr': '<f4', 'fortran_order': False, 'shape': (100, 10), }");
    file[10 + strlen(file + 10)] = ' ';
    memcpy(file, "\x93NUMPY\x01\0\x76\0", 10);
    for (int i = 0; i < 1000; i++) memcpy(file + 128 + 4 * i, &(float){ (float)i }, 4);
    server_file("x.npy", file, sizeof file);
    CornuDataset *dataset = cornu_npy_dataset(server_url("ranges", "x.npy"));
    if (!dataset) fail_msg("%s", cornu_error_message());
    dataset = cornu_dataset_shuffle(dataset, 3);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *element;
    double            sum = 0.0;
    for (int i = 0; i < 100; i++) {
        expect_ok(cornu_iterator_next(iterator, &element));
        for (int k = 0; k < 10; k++) sum += ((const float *)element->arrays[0].data)[k];
    }
    assert_true(sum == 999.0 * 500.0);
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
    server_file("y.npy", file, 2000);
    assert_null(cornu_npy_dataset(server_url("ranges", "y.npy?secret=letters")));
    expect_error(cornu_error_take(), CORNU_ERR_FORMAT, "/ranges/y.npy: (100, 10) of f4 takes 4000 "
                 "bytes, the file has 1872");
}

/* In order, also over a connection that ends all the time; skipped to where a training goes on. */
static void tfrecord(void **state)
{
    (void)state;
    NEED_CURL();
    static char file[200000];
    const CornuFeature features[] = { { "id", .dtype = CORNU_I64 }, { .name = NULL } };
    const char *path = files_path(folder, "a.tfrecord");
    CornuTfrecordWriter *writer = cornu_tfrecord_writer_open(path);
    for (int64_t i = 0; i < 3000; i++)
        cornu_tfrecord_writer_example(writer, &(CornuExampleFeature){
            .name = "id", .values = cornu_array_from(&i, cornu_type(CORNU_I64, 1)) }, 1);
    expect_ok(cornu_tfrecord_writer_close(writer));
    server_file("a.tfrecord", file, files_read(path, file, sizeof file));
    CornuDataset *dataset = cornu_tfrecord_dataset(server_url("cut", "a.tfrecord"), features);
    if (!dataset) fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu_dataset_count(dataset), CORNU_UNKNOWN);
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *element;
    for (int64_t i = 0; i < 3000; i++) {
        if (i == 1000) {
            i = 2000;
            expect_ok(cornu_iterator_seek(iterator, (CornuSample){ 0, i }));
        }
        expect_ok(cornu_iterator_next(iterator, &element));
        assert_int_equal(*(const int64_t *)element->arrays[0].data, i);
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static void tables(void **state)
{
    (void)state;
    NEED_CURL();
    static char text[300000];
    size_t      used = (size_t)sprintf(text, "a,b\n");
    for (int i = 0; i < 20000; i++)
        used += (size_t)sprintf(text + used, "%d,%s\n", i, i % 2 ? "odd" : "even");
    server_file("t.csv", text, used);
    for (int on_disk = 0; on_disk < 2; on_disk++) {
        CornuArray  a;
        CornuTable *table = cornu_table_load(server_url("ranges", "t.csv?secret=letters"),
                                             .on_disk = on_disk);
        if (!table) fail_msg("%s", cornu_error_message());
        assert_int_equal(cornu_table_rows(table), 20000);
        expect_ok(cornu_table_take(table, &a));
        for (int i = 0; i < 20000; i++) {
            assert_true(((const float *)a.data)[2 * i] == (float)i);
            assert_true(((const float *)a.data)[2 * i + 1] == (float)(i % 2));
        }
        free(a.data);
        cornu_table_free(table);
    }
    text[used - 3] = '"';
    server_file("damaged.csv", text, used);
    expect_unloaded(cornu_table_load(server_url("ranges", "damaged.csv?secret=letters")),
                    CORNU_ERR_FORMAT, "/ranges/damaged.csv: line 20001");
}

static size_t read_golden(const char *name, unsigned char *to, size_t size)
{
    char path[FILES_PATH];
    snprintf(path, sizeof path, "tests/golden/%s", name);
    return files_read(path, to, size);
}

/* Single files of other kinds, and folders of them, which are not listed. */
/* Copies, which are gone afterwards: the rows are those of the files here. */
static void parquet(void **state)
{
    (void)state;
    NEED_CURL();
    if (!dlopen("libparquet-glib.so", RTLD_NOW)) SKIP_FOR(SKIP_PARQUET);
    static char bytes[2][32768];
    const char *const columns[] = { "int32", "float64", NULL };
    const char *files[3] = { NULL };
    for (int i = 0; i < 2; i++) {
        const char  *name = i ? "rows-1.parquet" : "rows-0.parquet";
        const size_t size = files_read(i ? "tests/golden/parquet/rows-1.parquet"
                                         : "tests/golden/parquet/rows-0.parquet", bytes[i],
                                       sizeof bytes[i]);
        server_file(name, bytes[i], size);
        files[i] = server_url("cut", name);
    }
    CornuDataset *both[] = { cornu_parquet_dataset(.files = files, .columns = columns),
                             cornu_parquet_dataset("tests/golden/parquet/rows-*.parquet",
                                                   .columns = columns) };
    if (!both[0]) fail_msg("%s", cornu_error_message());
    CornuIterator *far = cornu_iterator_begin(both[0], 0), *near = cornu_iterator_begin(both[1], 0);
    for (int epoch = 0; epoch < 2; epoch++) {
        const CornuBatch *a, *b;
        int               rows = 0;
        expect_ok(cornu_iterator_rewind(far, epoch));
        expect_ok(cornu_iterator_rewind(near, epoch));
        while (!cornu_iterator_next(near, &b) && b) {
            expect_ok(cornu_iterator_next(far, &a));
            assert_non_null(a);
            for (int c = 0; c < 2; c++)
                assert_memory_equal(a->arrays[c].data, b->arrays[c].data,
                                    cornu_type_bytes(b->arrays[c].type));
            rows++;
        }
        assert_int_equal(rows, 40);
        expect_ok(cornu_iterator_next(far, &a));
        assert_null(a);
    }
    cornu_iterator_free(far), cornu_iterator_free(near);
    cornu_dataset_free(both[0]), cornu_dataset_free(both[1]);
    expect_failure(cornu_parquet_dataset(server_url("ranges", "a?secret=letters")),
                   CORNU_ERR_FORMAT, "/ranges/a: ");
}

static void images_and_sounds(void **state)
{
    (void)state;
    NEED_CURL();
    static unsigned char image[100000], sound[100000];
    server_file("a.png", image, read_golden("image_files/deep.png", image, sizeof image));
    server_file("a.wav", sound, read_golden("sounds/stereo.wav", sound, sizeof sound));
    CornuArray far, near;
    int64_t    rate;
    expect_ok(cornu_image_load(server_url("ranges", "a.png?secret=letters"), 0, &far));
    expect_ok(cornu_image_load("tests/golden/image_files/deep.png", 0, &near));
    assert_true(cornu_type_equal(far.type, near.type));
    assert_memory_equal(far.data, near.data, cornu_type_bytes(far.type));
    free(far.data), free(near.data);
    expect_ok(cornu_sound_load(server_url("ranges", "a.wav"), 0, &far, &rate));
    expect_ok(cornu_sound_load("tests/golden/sounds/stereo.wav", 0, &near, &rate));
    assert_true(cornu_type_equal(far.type, near.type));
    assert_memory_equal(far.data, near.data, cornu_type_bytes(far.type));
    free(far.data), free(near.data);
    expect_error(cornu_image_load(server_url("ranges", "a?secret=letters"), 0, &far),
                 CORNU_ERR_FORMAT, "/ranges/a: not a readable image");
    expect_error(cornu_sound_load(server_url("ranges", "a?secret=letters"), 0, &far, &rate),
                 CORNU_ERR_FORMAT, "/ranges/a: not a readable sound file");
    expect_failure(cornu_image_folder(server_url("ranges", "a?secret=letters"),
                                      .image_size = { 8 }), CORNU_ERR_UNSUPPORTED,
                   "/ranges/a: folders of other machines are not listed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(servers_that_can_be_read, served_enter),
        cmocka_unit_test_setup(transfers_go_on, served_enter),
        cmocka_unit_test_setup(programs_keep_their_strtok, served_enter),
        cmocka_unit_test_setup(servers_that_misbehave, served_enter),
        cmocka_unit_test_setup(secrets_are_not_shown, served_enter),
        cmocka_unit_test_setup(buckets, served_enter),
        cmocka_unit_test_setup(patterns, served_enter),
        cmocka_unit_test_setup(npy, served_enter),
        cmocka_unit_test_setup(tfrecord, served_enter),
        cmocka_unit_test_setup(tables, served_enter),
        cmocka_unit_test_setup(parquet, served_enter),
        cmocka_unit_test_setup(images_and_sounds, served_enter),
        cmocka_unit_test_setup(credentials, served_enter),
        cmocka_unit_test_setup(addresses_that_are_none, served_enter),
    };
    return cmocka_run_group_tests(tests, served_begin, served_end);
}
