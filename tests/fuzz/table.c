/* Tables in CSV, in memory or on disk: byte 0 chooses options; then they are read again by their
 * own schema. */
#include "fuzz.h"

#include "../../datasets/tables/table.h"

enum { DROP = 1, SEMICOLON = 2, BLANK = 4, CATEGORY = 8, FROM_FILE = 16, ONE_HOT = 32,
       ON_DISK = 64, KEEP = 128 };

static void take(const CornuTable *table, CornuDtype dtype, bool one_hot)
{
    CornuArray x = { 0 };
    if (fuzz_done(cornu_table_take(table, &x, .dtype = dtype, .one_hot = one_hot)))
        fuzz_read(x.data, cornu_type_bytes(x.type));
    free(x.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const categories[] = { "a", NULL };
    if (size < 1) return 0;
    const char            *text = (const char *)data + 1;
    const CornuTableConfig config = {
        .file = data[0] & FROM_FILE ? fuzz_file("table", text, size - 1) : NULL,
        .missing = data[0] & DROP ? CORNU_MISSING_DROPPED
                 : data[0] & KEEP ? CORNU_MISSING_KEPT : CORNU_MISSING_REFUSED,
        .on_disk = data[0] & ON_DISK,
        .delimiter = data[0] & SEMICOLON ? ';' : data[0] & BLANK ? ' ' : ',',
        .categories = data[0] & CATEGORY ? categories : NULL,
    };
    CornuTable *table = config.file ? cornu_table_load_from(&config)
                                    : cornu_table_parse(text, size - 1, "table", &config);
    if (!fuzz_loaded(table)) return 0;
    take(table, CORNU_F32, data[0] & ONE_HOT);
    take(table, CORNU_I32, data[0] & ONE_HOT);
    for (int64_t row = cornu_table_rows(table) - 1; row >= 0; row--)
        fuzz_expect(cornu_table_line(table, row) > 1, "the line of each row");
    char *schema = cornu_table_schema(table, NULL);
    fuzz_expect(schema, "a schema of any table");
    CornuTable *like = cornu_table_schema_parse(schema);
    fuzz_expect(fuzz_loaded(like), "a table from its own schema");
    const CornuTableConfig learnt = { .like = like, .delimiter = config.delimiter,
                                      .missing = config.missing };
    CornuTable *again = cornu_table_parse(text, size - 1, "table", &learnt);
    fuzz_expect(fuzz_loaded(again), "what was read, read again like itself");
    cornu_table_free(again);
    cornu_table_free(like);
    cornu_table_free(table);
    free(schema);
    return 0;
}
