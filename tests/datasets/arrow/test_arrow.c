/* Streams of Arrow that are made by hand: what becomes of them, what is refused, and that each part
 * is released once. tests/python/test_arrow.py has those of pyarrow. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/arrow/arrow.h"
#include "../../../datasets/pipeline/iterator.h"
#include "../../expect.h"
#include "../records/elements.h"

/* ---- A library that has record batches ---- */

enum { MOST = 8, BATCHES = 3, ROWS = 4 };

/* One column of all batches: the rows of batch b begin at offset b * ROWS. */
typedef struct {
    const char *name, *format;
    const void *buffers[3];
    int         buffer_count;
    int64_t     length;             /* 0: ROWS * BATCHES */
    bool        nulls, whole;       /* whole: of a child, without the offset of the batch */
    const char *child;              /* the name of the column that is its child, or dictionary */
} Column;

static struct {
    Column columns[MOST];
    int    count, shown;            /* columns, and those of the batches, the first ones */
    int    fails_at, error;         /* the batch that cannot be read, -1 */
    int    open;                    /* schemas, arrays and streams that are not released */
    int    streams, next;
    void (*spoil)(struct ArrowArray *batch);
    void (*spoil_schema)(struct ArrowSchema *schema);
    int    spoils_from;             /* the number of the first stream of which it is */
} library;

static void release_schema(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++)
        schema->children[i]->release(schema->children[i]), free(schema->children[i]);
    if (schema->dictionary) schema->dictionary->release(schema->dictionary);
    free(schema->dictionary);
    free(schema->children);
    schema->release = NULL;
    library.open--;
}

static void release_array(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++)
        array->children[i]->release(array->children[i]), free(array->children[i]);
    if (array->dictionary) array->dictionary->release(array->dictionary);
    free(array->dictionary);
    free(array->children);
    free((void *)array->buffers);
    array->release = NULL;
    library.open--;
}

static const Column *column_of(const char *name)
{
    for (int i = 0; i < library.count; i++)
        if (!strcmp(library.columns[i].name, name)) return &library.columns[i];
    return NULL;
}

static void fill_schema(struct ArrowSchema *schema, const Column *column)
{
    *schema = (struct ArrowSchema){ .format = column->format, .name = column->name,
                                    .release = release_schema };
    library.open++;
    if (!column->child) return;
    struct ArrowSchema *child = malloc(sizeof *child);
    fill_schema(child, column_of(column->child));
    if (column->format[0] == '+') {
        schema->n_children = 1;
        schema->children = malloc(sizeof *schema->children);
        schema->children[0] = child;
    } else {
        schema->dictionary = child;
    }
}

static void fill_array(struct ArrowArray *array, const Column *column, int64_t offset)
{
    const bool whole = column->whole || column->length;
    *array = (struct ArrowArray){ .length = column->length ? column->length
                                          : whole ? ROWS * BATCHES : ROWS,
                                  .offset = whole ? 0 : offset,
                                  .null_count = column->nulls ? -1 : 0,
                                  .n_buffers = column->buffer_count, .release = release_array };
    array->buffers = malloc(sizeof column->buffers);
    memcpy((void *)array->buffers, column->buffers, sizeof column->buffers);
    library.open++;
    if (!column->child) return;
    struct ArrowArray *child = malloc(sizeof *child);
    fill_array(child, column_of(column->child), 0);
    if (column->format[0] == '+') {
        array->n_children = 1;
        array->children = malloc(sizeof *array->children);
        array->children[0] = child;
    } else {
        array->dictionary = child;
    }
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *to)
{
    (void)stream;
    *to = (struct ArrowSchema){ .format = "+s", .n_children = library.shown,
                                .release = release_schema };
    to->children = malloc(MOST * sizeof *to->children);
    library.open++;
    for (int i = 0; i < library.shown; i++) {
        to->children[i] = malloc(sizeof **to->children);
        fill_schema(to->children[i], &library.columns[i]);
    }
    if (library.spoil_schema && library.streams >= library.spoils_from) library.spoil_schema(to);
    return 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *to)
{
    int *next = stream->private_data;
    memset(to, 0, sizeof *to);
    if (*next == library.fails_at) return library.error;
    if (*next == BATCHES) return 0;
    *to = (struct ArrowArray){ .length = ROWS, .n_buffers = 1, .n_children = library.shown,
                               .release = release_array };
    to->buffers = calloc(1, sizeof *to->buffers);
    to->children = malloc(MOST * sizeof *to->children);
    library.open++;
    for (int i = 0; i < library.shown; i++) {
        to->children[i] = malloc(sizeof **to->children);
        fill_array(to->children[i], &library.columns[i], *next * ROWS);
    }
    ++*next;
    if (library.spoil) library.spoil(to);
    return 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "page 7 is damaged\nin a file of its own";
}

static void release_stream(struct ArrowArrayStream *stream)
{
    free(stream->private_data);
    stream->release = NULL;
    library.open--;
}

static CornuStatus open_stream(void *context, int64_t epoch, struct ArrowArrayStream *stream)
{
    (void)context, (void)epoch;
    *stream = (struct ArrowArrayStream){ get_schema, get_next, get_last_error, release_stream,
                                         calloc(1, sizeof(int)) };
    library.open++;
    library.streams++;
    return CORNU_OK;
}

/* ---- Its columns ---- */

static const float   floats[12] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
static const int16_t shorts[12] = { -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5 };
static const uint8_t bits[2] = { 0xF7, 0x0F };      /* all but 3 */
static const int32_t offsets[13] = { 0, 0, 1, 3, 3, 4, 6, 6, 6, 9, 10, 11, 12 };
static const int8_t  indices[12] = { 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2 };
static const int32_t word_offsets[4] = { 0, 1, 3, 3 };
static const uint8_t truths[2] = { 0xA5, 0x05 };

static void use(int shown)
{
    static const Column columns[] = {
        { "float", "f", { NULL, floats }, 2, 0, false, false, NULL },
        { "short", "s", { NULL, shorts }, 2, 0, false, false, NULL },
        { "holes", "f", { bits, floats }, 2, 0, true, false, NULL },
        { "list", "+l", { NULL, offsets }, 2, 0, false, false, "items" },
        { "word", "c", { NULL, indices }, 2, 0, false, false, "words" },
        { "bool", "b", { NULL, truths }, 2, 0, false, false, NULL },
        { "items", "s", { NULL, shorts }, 2, 0, false, true, NULL },
        { "words", "u", { NULL, word_offsets, "abc" }, 3, 3, false, true, NULL },
    };
    memset(&library, 0, sizeof library);
    memcpy(library.columns, columns, sizeof columns);
    library.count = MOST;
    library.shown = shown;
    library.fails_at = -1;
}

static void expect_released(void)
{
    assert_int_equal(library.open, 0);
}

/* ---- Tests ---- */

static void columns_without_features(void **state)
{
    (void)state;
    use(2);
    CornuDataset *dataset = cornu_arrow_dataset(open_stream);
    if (!dataset) fail_msg("%s", cornu_error_message());
    assert_string_equal(cornu_arrow_column(dataset, 0), "float");
    assert_string_equal(cornu_arrow_column(dataset, 1), "short");
    assert_null(cornu_arrow_column(dataset, 2));
    assert_int_equal(cornu_dataset_count(dataset), CORNU_UNKNOWN);
    assert_int_equal(cornu_dataset_type(dataset, 1).dtype, CORNU_I32);
    CornuIterator *iterator = elements_begin(dataset);
    static const int order[] = { 0, 1, 2, 3, 4, 9, 11, 2, 3, 10 };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const CornuBatch *element = elements_at(iterator, order[i]);
        assert_true(*(const float *)element->arrays[0].data == (float)order[i]);
        assert_int_equal(*(const int32_t *)element->arrays[1].data, order[i] - 6);
    }
    assert_null(elements_at(iterator, 12));
    cornu_iterator_free(iterator);
    expect_released();
}

static void features(void **state)
{
    (void)state;
    use(6);
    const CornuFeature table[] = {
        { "list", CORNU_FEATURE_VAR, .dtype = CORNU_F64, .shape = { 1, { 3 } }, .padding = 7,
          .count = true },
        { "word", CORNU_FEATURE_BYTES, .shape = { 1, { 2 } } },
        { "bool", .dtype = CORNU_BOOL },
        { .name = NULL },
    };
    CornuIterator *iterator = elements_begin(cornu_arrow_dataset(open_stream, .features = table));
    for (int i = 0; i < 12; i++) {
        const CornuBatch *element = elements_at(iterator, i);
        const double     *list = element->arrays[0].data;
        const int         count = offsets[i + 1] - offsets[i], word = i % 3;
        for (int k = 0; k < 3; k++)
            assert_true(list[k] == (k < count ? shorts[offsets[i] + k] : 7));
        assert_int_equal(*(const int32_t *)element->arrays[1].data, count);
        assert_memory_equal(element->arrays[2].data, word == 0 ? "a" : word == 1 ? "bc" : "\0", 2);
        assert_int_equal(*(const bool *)element->arrays[3].data, truths[i / 8] >> i % 8 & 1);
    }
    cornu_iterator_free(iterator);
    expect_released();
}

static void a_stream_that_is_given(void **state)
{
    (void)state;
    use(1);
    struct ArrowArrayStream stream;
    open_stream(NULL, 0, &stream);
    CornuDataset *dataset = cornu_arrow_dataset(.stream = &stream);
    if (!dataset) fail_msg("%s", cornu_error_message());
    assert_null(stream.release);
    expect_released();
    assert_int_equal(cornu_dataset_count(dataset), 12);
    CornuIterator *iterator = elements_begin(cornu_dataset_shuffle(dataset, 5));
    double         sum = 0.0;
    for (int i = 0; i < 12; i++) sum += *(const float *)elements_at(iterator, i)->arrays[0].data;
    assert_true(sum == 66.0);
    cornu_iterator_free(iterator);
    open_stream(NULL, 0, &stream);
    expect_failure(cornu_arrow_dataset(open_stream, .stream = &stream), CORNU_ERR_ARGUMENT,
                   "both are given");
    expect_failure(cornu_arrow_dataset(NULL), CORNU_ERR_ARGUMENT, "none is given");
    expect_released();
}

static void nulls(void **state)
{
    (void)state;
    use(3);
    static const char *const one[] = { "holes", NULL };
    CornuIterator *iterator = elements_begin(cornu_arrow_dataset(open_stream, .columns = one));
    elements_at(iterator, 2);
    elements_expect_failure(iterator, 3, CORNU_ERR_VALUE,
                            "arrow: row 3, column \"holes\": is null");
    cornu_iterator_free(iterator);
    iterator = elements_begin(cornu_arrow_dataset(open_stream, .columns = one,
                                                  .missing = CORNU_MISSING_KEPT));
    assert_true(isnan(*(const float *)elements_at(iterator, 3)->arrays[0].data));
    cornu_iterator_free(iterator);
    iterator = elements_begin(cornu_arrow_dataset(open_stream, .columns = one,
                                                  .missing = CORNU_MISSING_DROPPED));
    assert_true(*(const float *)elements_at(iterator, 3)->arrays[0].data == 4.0f);
    assert_null(elements_at(iterator, 11));
    cornu_iterator_free(iterator);
    const float        nine = 9.0f;
    const CornuFeature table[] = { { "holes", .default_value = &nine }, { .name = NULL } };
    iterator = elements_begin(cornu_arrow_dataset(open_stream, .features = table));
    assert_true(*(const float *)elements_at(iterator, 3)->arrays[0].data == 9.0f);
    cornu_iterator_free(iterator);
    expect_released();
}

/* ---- Batches that are not as their schema says ---- */

static void no_buffer(struct ArrowArray *b) { b->children[0]->buffers[1] = NULL; }
static void few_buffers(struct ArrowArray *b) { b->children[0]->n_buffers = 1; }
static void short_column(struct ArrowArray *b) { b->children[0]->length = 3; }
static void negative_length(struct ArrowArray *b) { b->children[0]->length = -1; }
static void negative_offset(struct ArrowArray *b) { b->children[0]->offset = -1; }
static void huge_offset(struct ArrowArray *b) { b->children[0]->offset = INT64_MAX; }
static void nulls_without_bits(struct ArrowArray *b) { b->children[0]->null_count = 2; }
static void list_beyond(struct ArrowArray *b) { b->children[3]->children[0]->length = 2; }
static void list_back(struct ArrowArray *b)
{
    static const int32_t back[13] = { 0, 3, 1 };
    b->children[3]->buffers[1] = back;
}
static void list_negative(struct ArrowArray *b)
{
    static const int32_t negative[13] = { -4, 0, 1, 2, 3 };
    b->children[3]->buffers[1] = negative;
}
static void index_beyond(struct ArrowArray *b) { b->children[4]->dictionary->length = 1; }
static void few_children(struct ArrowArray *b)
{
    struct ArrowArray *last = b->children[--b->n_children];
    last->release(last), free(last);
}

static void damaged_batches(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(struct ArrowArray *);
        const char *text;
    } cases[] = {
        { no_buffer, "batch 0: a batch whose column \"float\" of format \"f\" has a buffer that" },
        { few_buffers, "has another number of buffers" },
        { short_column, "has fewer rows than the batch" },
        { negative_length, "has fewer rows than the batch" },
        { negative_offset, "has fewer rows than the batch" },
        { huge_offset, "has fewer rows than the batch" },
        { nulls_without_bits, "has nulls, and no bits that say which" },
        { list_beyond, "\"items\" of format \"s\" has fewer rows than the batch" },
        { list_back, "\"list\" of format \"+l\" has offsets that go back" },
        { list_negative, "\"list\" of format \"+l\" has a negative offset" },
        { index_beyond, "row 1, column \"word\": is index 1 of a dictionary of 1" },
        { few_children, "has other buffers or children than its schema" },
    };
    const CornuFeature table[] = {
        { .name = "float" },
        { "list", CORNU_FEATURE_VAR, .dtype = CORNU_I64, .shape = { 1, { 3 } } },
        { "word", CORNU_FEATURE_BYTES, .shape = { 1, { 2 } } },
        { .name = NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        use(6);
        library.spoil = cases[i].spoil;
        CornuIterator *iterator = elements_begin(cornu_arrow_dataset(open_stream,
                                                                     .features = table));
        elements_expect_failure(iterator, 1, CORNU_ERR_FORMAT, cases[i].text);
        cornu_iterator_free(iterator);
        expect_released();
    }
}

/* ---- Schemas that are none, or others than the first one ---- */

static void no_format(struct ArrowSchema *s) { s->children[3]->children[0]->format = NULL; }
static void list_of_words(struct ArrowSchema *s) { s->children[3]->children[0]->format = "u"; }
static void list_of_floats(struct ArrowSchema *s) { s->children[3]->children[0]->format = "f"; }
static void wide_offsets(struct ArrowSchema *s) { s->children[3]->format = "+L"; }
static void float_indices(struct ArrowSchema *s) { s->children[4]->format = "f"; }
static void dictionary_of_lists(struct ArrowSchema *s)
{
    s->children[4]->dictionary->format = "+l";
}
static void no_child(struct ArrowSchema *s)
{
    struct ArrowSchema *list = s->children[3];
    list->children[0]->release(list->children[0]);
    free(list->children[--list->n_children]);
}
static void no_dictionary(struct ArrowSchema *s)
{
    s->children[4]->dictionary->release(s->children[4]->dictionary);
    free(s->children[4]->dictionary);
    s->children[4]->dictionary = NULL;
}

static void damaged_schemas(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(struct ArrowSchema *);
        CornuStatus status;
        const char *text;
    } cases[] = {
        { no_format, CORNU_ERR_FORMAT, "arrow: a schema whose column \"items\" has no format" },
        { no_child, CORNU_ERR_FORMAT, "\"list\" has another number of children than one" },
        { float_indices, CORNU_ERR_FORMAT, "\"word\" has a dictionary for what is no whole" },
        { dictionary_of_lists, CORNU_ERR_FORMAT, "\"words\" has another number of children" },
        { list_of_words, CORNU_ERR_UNSUPPORTED, "list: the column is of Arrow's format \"u\"" },
        { list_of_floats, CORNU_ERR_UNSUPPORTED, "list: the column is of floats, expected whole" },
        { no_dictionary, CORNU_ERR_UNSUPPORTED, "word: the column is of Arrow's format \"c\"" },
        { wide_offsets, CORNU_ERR_DATA, "column \"list\" is another one, or of another type" },
    };
    const CornuFeature table[] = {
        { "list", CORNU_FEATURE_VAR, .dtype = CORNU_I64, .shape = { 1, { 3 } } },
        { "word", CORNU_FEATURE_BYTES, .shape = { 1, { 2 } } },
        { .name = NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int from = 1; from <= 2; from++) {
            if (from == 1 && cases[i].status == CORNU_ERR_DATA) continue;   /* sound by itself */
            use(6);
            library.spoil_schema = cases[i].spoil;
            library.spoils_from = from;
            CornuDataset *dataset = cornu_arrow_dataset(open_stream, .features = table);
            if (from == 1) {
                expect_failure(dataset, cases[i].status, cases[i].text);
            } else {
                CornuIterator *iterator = elements_begin(dataset);
                elements_expect_failure(iterator, 0, cases[i].status, cases[i].text);
                cornu_iterator_free(iterator);
            }
            expect_released();
        }
}

/* ---- Structures ---- */

static void far_away(struct ArrowArray *b)
{
    b->offset = 1;
    b->children[0]->length = 12;
    b->children[0]->offset = INT64_MAX;
}

/* As data sets of pictures have them: the bytes of a file, here a BMP of one pixel. */
static void structures_of_images(void **state)
{
    (void)state;
    enum { BYTES = 58 };
    static unsigned char files[12][BYTES];
    static int32_t       places[13];
    use(1);
    for (int i = 0; i < 12; i++) {
        static const unsigned char head[] = { 'B', 'M', BYTES, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40,
                                              0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 24 };
        memcpy(files[i], head, sizeof head);
        memset(files[i] + 54, 10 * i, 3);
        places[i + 1] = BYTES * (i + 1);
    }
    library.columns[0] = (Column){ "photo", "+s", { NULL }, 1, 0, false, false, "bytes" };
    library.columns[1] = (Column){ "bytes", "z", { NULL, places, files }, 3, 0, false, true, NULL };
    const CornuFeature table[] = { { "photo", CORNU_FEATURE_IMAGE, .shape = { 3, { 1, 1, 3 } } },
                                   { .name = NULL } };
    CornuIterator *iterator = elements_begin(cornu_arrow_dataset(open_stream, .features = table));
    for (int i = 0; i < 12; i++)
        assert_int_equal(*(const uint8_t *)elements_at(iterator, i)->arrays[0].data, 10 * i);
    cornu_iterator_free(iterator);
    library.spoil = far_away;
    iterator = elements_begin(cornu_arrow_dataset(open_stream, .features = table));
    elements_expect_failure(iterator, 0, CORNU_ERR_FORMAT, "has other buffers or children than");
    cornu_iterator_free(iterator);
    expect_released();
}

static void streams_that_fail(void **state)
{
    (void)state;
    static const struct { int error; CornuStatus status; } cases[] = {
        { EINVAL, CORNU_ERR_FORMAT }, { EIO, CORNU_ERR_FILE }, { ENOMEM, CORNU_ERR_MEMORY },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        use(1);
        library.fails_at = 1;
        library.error = cases[i].error;
        CornuIterator *iterator = elements_begin(cornu_arrow_dataset(open_stream));
        elements_at(iterator, 3);
        elements_expect_failure(iterator, 4, cases[i].status,
                                "arrow: batch 1 cannot be read: page 7 is damaged");
        assert_null(strstr(cornu_error_message(), "of its own"));
        assert_true(*(const float *)elements_at(iterator, 2)->arrays[0].data == 2.0f);
        cornu_iterator_free(iterator);
        expect_released();
    }
}

static int closed;
static void note_close(void *context) { closed += context == &closed; }

static void settings_that_are_refused(void **state)
{
    (void)state;
    static const char *const absent[] = { "float", "absent", NULL };
    static const struct { const char *format; const char *text; } formats[] = {
        { "u", "of Arrow's format \"u\"" }, { "d:10,2", "of Arrow's format \"d:10,2\"" },
        { "vu", "of Arrow's format \"vu\"" }, { "+m", "of Arrow's format \"+m\"" },
        { "+w:-1", "of Arrow's format \"+w:-1\"" }, { "", "of Arrow's format \"\"" },
    };
    use(6);
    expect_failure(cornu_arrow_dataset(open_stream, .columns = absent, .context = &closed,
                                       .close = note_close),
                   CORNU_ERR_DATA,
                   "no column \"absent\", but float, short, holes, list, word, bool");
    assert_int_equal(closed, 1);
    const CornuFeature wrong[] = { { "float", .dtype = CORNU_I32 }, { .name = NULL } };
    expect_failure(cornu_arrow_dataset(open_stream, .features = wrong), CORNU_ERR_UNSUPPORTED,
                   "float: the column is of floats, expected whole numbers for i32");
    expect_failure(cornu_arrow_dataset(open_stream, .features = wrong, .columns = absent),
                   CORNU_ERR_ARGUMENT, ".columns is for data without .features");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        use(1);
        library.columns[0].format = formats[i].format;
        expect_failure(cornu_arrow_dataset(open_stream), CORNU_ERR_UNSUPPORTED, formats[i].text);
        expect_released();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_without_features), cmocka_unit_test(features),
        cmocka_unit_test(a_stream_that_is_given), cmocka_unit_test(nulls),
        cmocka_unit_test(damaged_batches), cmocka_unit_test(streams_that_fail),
        cmocka_unit_test(damaged_schemas), cmocka_unit_test(structures_of_images),
        cmocka_unit_test(settings_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
