/* The schema of a table, a CSV line for each column: written and read. */
#include <string.h>

#include "../../device/memory_internal.h"
#include "table_internal.h"

/* ---- Reading ---- */

/* Reads a line: a name, followed by its sorted categories. */
static CornuStatus read_line(CornuTable *table, CornuTableText *from, int *columns_space)
{
    const int64_t line = from->line;
    char         *text;
    bool          last;
    int           space = 0;
    CORNU__TRY(cornu__reserve(&table->column, columns_space, table->columns, 1,
                              sizeof *table->column));
    CORNU__TRY(cornu__table_text_word(from, &text, &last));
    if (!*text || cornu__table_column(table, text) >= 0 ||
        table->columns == CORNU_MAX_TABLE_COLUMNS)
        return cornu__table_text_fail(from, CORNU_ERR_FORMAT, line, NULL, "column \"%.99s\" is %s",
                                      text, !*text ? "without a name"
                                      : table->columns == CORNU_MAX_TABLE_COLUMNS
                                      ? "beyond the maximum" : "there twice");
    CornuColumn *column = &table->column[table->columns++];
    *column = (CornuColumn){ .name = cornu__copy_text(text) };
    if (!column->name) return CORNU_ERR_MEMORY;
    while (!last) {
        CORNU__TRY(cornu__table_text_word(from, &text, &last));
        const int count = column->category_count;
        if (count && strcmp(column->category[count - 1], text) >= 0)
            return cornu__table_text_fail(from, CORNU_ERR_FORMAT, line, NULL,
                                          "categories are not sorted");
        CORNU__TRY(cornu__add_text(&column->category, &space, &column->category_count, text));
    }
    return CORNU_OK;
}

static CornuStatus read_lines(CornuTable *table, CornuTableText *text)
{
    int  space = 0;
    bool more;
    CORNU__TRY(cornu__table_text_open(text));
    for (;;) {
        CORNU__TRY(cornu__table_text_line(text, &more));
        if (!more) break;
        CORNU__TRY(read_line(table, text, &space));
    }
    if (table->columns) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "%s: has no columns", table->name);
}

CornuTable *cornu_table_schema_parse(const char *schema)
{
    if (cornu__refused()) return NULL;
    if (!schema) {
        cornu__fail(CORNU_ERR_ARGUMENT, "table: the schema is NULL");
        return cornu__loaded(NULL);
    }
    CornuTable *table = cornu__allocate(1, sizeof *table);
    if (!table) return cornu__loaded(NULL);
    atomic_init(&table->owners, 1);
    table->input.descriptor = -1;
    table->name = cornu__copy_text("the table's schema");
    CornuTableText text = { .name = table->name, .delimiter = ',', .memory = schema,
                            .size = (int64_t)strlen(schema) };
    const CornuStatus status = table->name ? read_lines(table, &text) : CORNU_ERR_MEMORY;
    cornu__table_text_close(&text);
    if (!status) return cornu__loaded(table);
    cornu_table_free(table);
    return cornu__loaded(NULL);
}

/* ---- Writing ---- */

typedef struct {
    char *bytes;
    int   size, space;
} Text;

static CornuStatus append_bytes(Text *text, const char *bytes, size_t size)
{
    CORNU__TRY(cornu__reserve(&text->bytes, &text->space, text->size, (int)size, 1));
    if (size) memcpy(text->bytes + text->size, bytes, size);
    text->size += (int)size;
    return CORNU_OK;
}

/* In quotes if it would be misread without them. */
static CornuStatus append_field(Text *text, const char *field)
{
    const size_t length = strlen(field);
    const bool   plain = length && !strpbrk(field, ",\"\r\n") && !strchr(" \t", field[0]) &&
                         !strchr(" \t", field[length - 1]);
    if (plain) return append_bytes(text, field, length);
    CORNU__TRY(append_bytes(text, "\"", 1));
    for (const char *c = field; *c; c++)
        CORNU__TRY(append_bytes(text, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1));
    return append_bytes(text, "\"", 1);
}

static CornuStatus append_column(Text *text, const CornuColumn *column)
{
    CORNU__TRY(append_field(text, column->name));
    for (int i = 0; i < column->category_count; i++) {
        CORNU__TRY(append_bytes(text, ",", 1));
        CORNU__TRY(append_field(text, column->category[i]));
    }
    return append_bytes(text, "\n", 1);
}

char *cornu_table_schema(const CornuTable *table, const char *const *columns)
{
    const CornuTableTakeConfig config = { .columns = columns };
    Text text = { .bytes = NULL };
    int  count;
    int *chosen = cornu__table_choose(&config, table, &count);
    CornuStatus status = chosen ? CORNU_OK : cornu_error_status();
    for (int i = 0; i < count && !status; i++)
        status = append_column(&text, &table->column[chosen[i]]);
    if (!status) status = append_bytes(&text, "", 1);
    cornu__release(chosen);
    if (!status) return text.bytes;
    cornu__release(text.bytes);
    return NULL;
}
