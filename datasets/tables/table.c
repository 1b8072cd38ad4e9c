/* Scanning tables: the kinds, categories and values of the columns of a CSV. */
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "../files/inputs_internal.h"
#include "table_internal.h"
#include "words_internal.h"

enum { UNDECIDED, NUMBERS, WORDS };
enum { SHOWN = 100 };   /* bytes of a value in a message, with the NUL */

/* A column of the file while it is scanned. */
typedef struct {
    char        *name;         /* owned */
    int          kind;
    int          to;           /* in the table; -1: not read */
    const CornuColumn *like;
    CornuWords   words;        /* owned: those so far, by which values are numbered at first */
    int          space;        /* of the values */
    char         first[SHOWN]; /* the value that decided the kind */
    int64_t      first_line;
} Reading;

typedef struct {
    const CornuTableConfig *config;
    CornuTable    *table;
    CornuTableText text;
    const CornuTableSource *source;   /* of rows not parsed from text; NULL: the text */
    Reading       *column;     /* owned */
    CornuField    *field;      /* owned: one for each column */
    int            columns, space, line_space;
} Reader;

#define fail(reader, status, line, column, ...) \
    cornu__table_text_fail(&(reader)->text, status, line, column, __VA_ARGS__)

/* ---- The header ---- */

static bool listed(const char *const *list, const char *text)
{
    while (list && *list)
        if (!strcmp(*list++, text)) return true;
    return false;
}

/* A column without a name, as that of the index which pandas writes, is called as pandas does. */
static CornuStatus add_name(Reader *reader, const char *name)
{
    char number[32];
    if (!*name) {
        snprintf(number, sizeof number, "Unnamed: %d", reader->columns);
        name = number;
    }
    for (int c = 0; c < reader->columns; c++)
        if (!strcmp(reader->column[c].name, name))
            return fail(reader, CORNU_ERR_FORMAT, 1, name, "is listed twice");
    if (reader->columns == CORNU_MAX_TABLE_COLUMNS)
        return fail(reader, CORNU_ERR_FORMAT, 1, NULL, "more than %d columns",
                    CORNU_MAX_TABLE_COLUMNS);
    CORNU__TRY(cornu__reserve(&reader->column, &reader->space, reader->columns, 1,
                              sizeof *reader->column));
    Reading *column = &reader->column[reader->columns];
    *column = (Reading){ .name = cornu__copy_text(name), .to = -1 };
    if (!column->name) return CORNU_ERR_MEMORY;
    reader->columns++;
    return CORNU_OK;
}

static CornuStatus read_names(Reader *reader)
{
    static const char byte_order_mark[] = "\xEF\xBB\xBF";
    bool more = false, last = false;
    CORNU__TRY(cornu__table_text_line(&reader->text, &more));
    if (more && !strncmp(reader->text.at, byte_order_mark, 3)) {
        reader->text.at += 3;
        CORNU__TRY(cornu__table_text_line(&reader->text, &more));
    }
    if (!more)
        return cornu__fail(CORNU_ERR_FORMAT, "%s: is empty, expected a line of column names",
                           reader->table->name);
    while (!last) {
        char *name;
        CORNU__TRY(cornu__table_text_word(&reader->text, &name, &last));
        CORNU__TRY(add_name(reader, name));
    }
    return CORNU_OK;
}

static CornuStatus read_header(Reader *reader)
{
    const CornuTableSource *source = reader->source;
    if (!source) CORNU__TRY(read_names(reader));
    for (int c = 0; source && c < source->count; c++)
        CORNU__TRY(add_name(reader, source->names[c]));
    reader->field = cornu__allocate((size_t)reader->columns, sizeof *reader->field);
    return reader->field ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus check_names(const Reader *reader, const char *const *names)
{
    for (; names && *names; names++)
        if (cornu_table_find(reader->table, *names) < 0) return cornu_error_status();
    return CORNU_OK;
}

/* Creates the columns of the table, with their kinds if known. */
static CornuStatus open_columns(Reader *reader)
{
    CornuTable *table = reader->table;
    const CornuTableConfig *config = reader->config;
    table->column = cornu__allocate((size_t)reader->columns, sizeof *table->column);
    if (!table->column) return CORNU_ERR_MEMORY;
    for (int c = 0; c < reader->columns; c++) {
        Reading  *column = &reader->column[c];
        const int same = config->like ? cornu__table_column(config->like, column->name) : 0;
        if (same < 0 || (config->columns && !listed(config->columns, column->name))) continue;
        if (config->like) {
            column->like = &config->like->column[same];
            column->kind = column->like->category_count ? WORDS : NUMBERS;
        } else if (listed(config->categories, column->name)) {
            column->kind = WORDS;
        }
        CornuColumn *to = &table->column[table->columns];
        to->name = cornu__copy_text(column->name);
        if (!to->name) return CORNU_ERR_MEMORY;
        column->to = table->columns++;
    }
    CORNU__TRY(check_names(reader, config->columns));
    return check_names(reader, config->like ? NULL : config->categories);
}

/* ---- Rows ---- */

bool cornu__table_missing(const CornuField *field, char *const *own)
{
    static const char *const usual[] = {
        "NA", "NaN", "nan", "NULL", "null", "N/A", "n/a", "None", "#N/A", "#N/A N/A", "#NA",
        "<NA>", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", NULL
    };
    if (field->is_number && !own) return false;
    return !*field->text || listed(own ? (const char *const *)own : usual, field->text);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int cornu__category_of(char *word, char *const *category, int count)
{
    char **found = bsearch(&word, category, (size_t)count, sizeof *category, by_text);
    return found ? (int)(found - (char **)category) : -1;
}

/* Reports a value that is not of the column's kind. */
static CornuStatus other_kind(const Reader *reader, const Reading *column, const char *text,
                              int64_t line)
{
    const bool numbers = column->kind == NUMBERS;
    if (!column->first_line)
        return fail(reader, CORNU_ERR_VALUE, line, column->name, "\"%.99s\" is not a number, as "
                    "expected from the training data", text);
    return fail(reader, CORNU_ERR_VALUE, line, column->name, "\"%.99s\" is %s number, but "
                "\"%.99s\" on line %lld is%s; is one of them a missing value, or is the column a "
                "category?", text, numbers ? "not a" : "a", column->first,
                (long long)column->first_line, numbers ? "" : " not");
}

/* Counts or refuses an unknown category. */
static CornuStatus note_unknown(const Reader *reader, const Reading *column, const char *text,
                                int64_t line)
{
    CornuColumn *to = &reader->table->column[column->to];
    if (reader->config->unknown == CORNU_UNKNOWN_REFUSED)
        return fail(reader, CORNU_ERR_VALUE, line, column->name, "\"%.99s\" is not among the %d "
                    "categories of the training data", text, column->like->category_count);
    if (to->unknown++) return CORNU_OK;
    to->first_unknown = cornu__copy_text(text);
    return to->first_unknown ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* The number of a word: the index of its category or, where they are not known, of the word. */
static CornuStatus number_word(Reader *reader, Reading *column, char *text, int64_t line,
                               double *number)
{
    int index;
    if (column->like) {
        *number = cornu__category_of(text, column->like->category, column->like->category_count);
        return *number < 0.0 ? note_unknown(reader, column, text, line) : CORNU_OK;
    }
    if (reader->table->on_disk && column->words.count == CORNU_MAX_TABLE_CATEGORIES)
        return fail(reader, CORNU_ERR_FORMAT, line, column->name, "has more than %d different "
                    "words, too many for categories; .columns leaves a column out",
                    CORNU_MAX_TABLE_CATEGORIES);
    CORNU__TRY(cornu__words_find(&column->words, text, &index));
    *number = index;
    return CORNU_OK;
}

/* The value of a field that is not missing. */
static CornuStatus read_value(Reader *reader, Reading *column, const CornuField *field,
                              int64_t line, double *value)
{
    const bool numeric = field->is_number;
    if (column->kind == UNDECIDED) {
        column->kind = numeric ? NUMBERS : WORDS;
        strncpy(column->first, field->text, SHOWN - 1);
        column->first_line = line;
    }
    if (column->kind == NUMBERS ? !numeric : numeric && column->first_line)
        return other_kind(reader, column, field->text, line);
    *value = field->number;
    return column->kind == NUMBERS ? CORNU_OK
                                   : number_word(reader, column, field->text, line, value);
}

/* Appends to the column, unless the table is on disk. The index of a word is that of its category
 * once all words are known. */
static CornuStatus store(Reader *reader, Reading *column, const CornuField *field, int64_t line)
{
    CornuTable  *table = reader->table;
    CornuColumn *to = &table->column[column->to];
    const bool   missing = cornu__table_missing(field, table->missing_values);
    double       value = column->kind == WORDS ? -1.0 : NAN;
    if (!missing) CORNU__TRY(read_value(reader, column, field, line, &value));
    if (table->on_disk) return CORNU_OK;
    if (table->rows == column->space)
        CORNU__TRY(cornu__reserve(&to->value, &column->space, (int)table->rows, 1, sizeof value));
    to->value[table->rows] = value;
    return CORNU_OK;
}

CornuStatus cornu__table_fields(CornuTableText *text, CornuField *field, int count)
{
    const int64_t line = text->line;
    bool          last = false;
    int           found = 0;
    for (; !last; found++) {
        CornuField beyond;
        CORNU__TRY(cornu__table_text_value(text, found < count ? &field[found] : &beyond, &last));
    }
    if (found == count) return CORNU_OK;
    return cornu__table_text_fail(text, CORNU_ERR_FORMAT, line, NULL, "%d field%s, expected %d as "
                                  "in the first line", found, found == 1 ? "" : "s", count);
}

/* The first column that is read whose field is missing, or NULL. */
static const Reading *first_missing(const Reader *reader)
{
    for (int c = 0; c < reader->columns; c++)
        if (reader->column[c].to >= 0 &&
            cornu__table_missing(&reader->field[c], reader->table->missing_values))
            return &reader->column[c];
    return NULL;
}

/* Where row `rows` of the table begins. */
static CornuStatus note_place(Reader *reader, CornuTableMark mark)
{
    CornuTable *table = reader->table;
    if (table->on_disk) return cornu__table_mark(table, table->rows, mark);
    if (table->rows == INT32_MAX / 2)
        return fail(reader, CORNU_ERR_FORMAT, mark.line, NULL, "more than %d rows",
                    INT32_MAX / 2);
    CORNU__TRY(cornu__reserve(&table->line, &reader->line_space, (int)table->rows, 1,
                              sizeof *table->line));
    table->line[table->rows] = mark.line;
    return CORNU_OK;
}

/* Reads the fields of the next row, if there is one, and where it begins. */
static CornuStatus next_row(Reader *reader, CornuTableMark *mark, bool *more)
{
    if (reader->source) {
        mark->line = ++reader->text.line;
        return reader->source->next(reader->source->own, reader->field, more);
    }
    CORNU__TRY(cornu__table_text_line(&reader->text, more));
    *mark = (CornuTableMark){ cornu__table_text_place(&reader->text), reader->text.line };
    return *more ? cornu__table_fields(&reader->text, reader->field, reader->columns) : CORNU_OK;
}

/* Adds the row whose fields were read. */
static CornuStatus add_row(Reader *reader, CornuTableMark mark)
{
    CornuTable    *table = reader->table;
    const Reading *missing = table->missing == CORNU_MISSING_KEPT ? NULL : first_missing(reader);
    if (missing && table->missing == CORNU_MISSING_REFUSED)
        return fail(reader, CORNU_ERR_VALUE, mark.line, missing->name, "the value is missing; "
                    ".missing = CORNU_MISSING_DROPPED drops such rows");
    if (missing) {
        table->dropped++;
        return CORNU_OK;
    }
    for (int c = 0; c < reader->columns; c++)
        if (reader->column[c].to >= 0)
            CORNU__TRY(store(reader, &reader->column[c], &reader->field[c], mark.line));
    CORNU__TRY(note_place(reader, mark));
    table->rows++;
    return CORNU_OK;
}

static CornuStatus read_rows(Reader *reader)
{
    CornuTable    *table = reader->table;
    CornuTableMark mark = { 0, 0 };
    bool           more = true;
    for (;;) {
        CORNU__TRY(next_row(reader, &mark, &more));
        if (!more) break;
        CORNU__TRY(add_row(reader, mark));
    }
    if (!table->rows)
        return cornu__fail(CORNU_ERR_DATA, "%s: no rows%s", table->name,
                           table->dropped ? " without a missing value" : "");
    return table->on_disk ? cornu__table_mark_end(table, mark) : CORNU_OK;
}

/* ---- Categories ---- */

/* Sorts the words of a column and sets its values to their indices. */
static CornuStatus sort_words(Reading *column, CornuColumn *to, int64_t rows)
{
    int *index;
    CORNU__TRY(cornu__words_sort(&column->words, &to->category, &to->category_count, &index));
    for (int64_t row = 0; to->value && row < rows; row++)   /* NaN: missing before any word came */
        to->value[row] = to->value[row] >= 0.0 ? index[(int)to->value[row]] : -1.0;
    cornu__release(index);
    return CORNU_OK;
}

static CornuStatus copy_categories(CornuColumn *to, const CornuColumn *like)
{
    const int count = like->category_count;
    to->category = cornu__allocate((size_t)count, sizeof *to->category);
    if (!to->category) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) {
        to->category[i] = cornu__copy_text(like->category[i]);
        if (!to->category[i]) return CORNU_ERR_MEMORY;
        to->category_count++;
    }
    return CORNU_OK;
}

/* A column without any value has no words, and is one of numbers. */
static CornuStatus finish_columns(Reader *reader)
{
    CornuTable *table = reader->table;
    for (int c = 0; c < reader->columns; c++) {
        Reading     *column = &reader->column[c];
        CornuColumn *to = column->to < 0 ? NULL : &table->column[column->to];
        if (to && column->words.count) CORNU__TRY(sort_words(column, to, table->rows));
        if (to && column->like && column->like->category_count)
            CORNU__TRY(copy_categories(to, column->like));
    }
    table->field = cornu__allocate((size_t)reader->columns, sizeof *table->field);
    if (!table->field) return CORNU_ERR_MEMORY;
    table->fields = reader->columns;
    for (int c = 0; c < reader->columns; c++) table->field[c] = reader->column[c].to;
    return CORNU_OK;
}

/* ---- Files ---- */

static CornuStatus copy_missing_values(CornuTable *table, const char *const *values)
{
    int count = 0;
    if (!values) return CORNU_OK;
    while (values[count]) count++;
    table->missing_values = cornu__allocate((size_t)count + 1, sizeof *table->missing_values);
    if (!table->missing_values) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) {
        table->missing_values[i] = cornu__copy_text(values[i]);
        if (!table->missing_values[i]) return CORNU_ERR_MEMORY;
    }
    return CORNU_OK;
}

static CornuStatus read_table(Reader *reader)
{
    CornuTable *table = reader->table;
    table->delimiter = reader->text.delimiter;
    table->missing = reader->config->missing;
    reader->text.name = table->name;
    const char *const *const missing = reader->config->missing_values;
    CORNU__TRY(copy_missing_values(table, missing || !reader->source
                                              ? missing : (const char *const[]){ NULL }));
    if (!reader->source) CORNU__TRY(cornu__table_text_open(&reader->text));
    CORNU__TRY(read_header(reader));
    CORNU__TRY(open_columns(reader));
    CORNU__TRY(read_rows(reader));
    return finish_columns(reader);
}

/* From memory, an open file, which a table on disk takes, or a source. */
static CornuTable *parse(const CornuTableConfig *config, const char *name, const char *memory,
                         int64_t size, CornuInput *input, const CornuTableSource *source)
{
    CornuTable *table = cornu__allocate(1, sizeof *table);
    Reader      reader = { .config = config, .table = table, .source = source };
    if (table) {
        atomic_init(&table->owners, 1);
        table->name = cornu__copy_text(name);
        table->input = (CornuInput){ .descriptor = -1 };
    }
    reader.text = (CornuTableText){ .delimiter = config->delimiter ? config->delimiter : ',',
                                    .memory = memory, .input = input, .size = size,
                                    .unit = source ? "row" : NULL };
    if (table && input && config->on_disk) {
        table->on_disk = true;
        table->changed = cornu__table_changed(input);
        table->input = *input;
        *input = (CornuInput){ .descriptor = -1 };
        reader.text.input = &table->input;
    }
    CornuStatus status = table && table->name ? read_table(&reader) : CORNU_ERR_MEMORY;
    for (int c = 0; c < reader.columns; c++) {
        cornu__words_free(&reader.column[c].words);
        cornu__release(reader.column[c].name);
    }
    cornu__release(reader.column);
    cornu__release(reader.field);
    cornu__table_text_close(&reader.text);
    if (!status) {
        cornu__log(CORNU_LOG_INFO, "%s: %lld rows of %d columns", name, (long long)table->rows,
                   table->columns);
        return table;
    }
    cornu_table_free(table);
    return NULL;
}

CornuTable *cornu_table_parse(const char *bytes, size_t size, const char *name,
                              const CornuTableConfig *config)
{
    CORNU__NEED_TO_LOAD(bytes);
    CORNU__NEED_TO_LOAD(config);
    if (cornu__refused()) return NULL;
    return cornu__loaded(parse(config, name, bytes, (int64_t)size, NULL, NULL));
}

CornuTable *cornu__table_read(const CornuTableConfig *config, const char *name,
                              const CornuTableSource *source)
{
    return parse(config, name, NULL, 0, NULL, source);
}

/* The format of tables that users have beside CSV, whose bytes say nothing to them. */
static CornuStatus check_text(const CornuInput *input)
{
    char first[4] = "";
    if (input->size < (int64_t)sizeof first) return CORNU_OK;
    CORNU__TRY(cornu__input_read(input, 0, first, sizeof first));
    if (memcmp(first, "PAR1", sizeof first)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "a Parquet file, expected CSV; cornu_parquet_table "
                       "reads it");
}

static CornuStatus open_file(const CornuTableConfig *config, const char *name, CornuInput *input)
{
    CORNU__TRY(cornu__fail_prefix(cornu__input_open_any(input, config->file), name));
    const CornuStatus status = cornu__fail_prefix(check_text(input), name);
    if (status) {
        cornu__input_close(input);
        return status;
    }
    if (config->on_disk || input->size <= CORNU_MAX_TABLE_BYTES) return CORNU_OK;
    cornu__input_close(input);
    return cornu__fail(CORNU_ERR_FORMAT, "%s: is larger than %d bytes; .on_disk reads such a file",
                       name, CORNU_MAX_TABLE_BYTES);
}

CornuTable *cornu_table_load_from(const CornuTableConfig *config)
{
    CornuInput input;
    char       shown[CORNU__SHOWN];
    if (cornu__refused()) return NULL;
    if (!config->file) {
        cornu__fail(CORNU_ERR_ARGUMENT, "table: .file is not given");
        return cornu__loaded(NULL);
    }
    const char *name = cornu__inputs_name(config->file, shown);
    if (open_file(config, name, &input)) return cornu__loaded(NULL);
    CornuTable *table = parse(config, name, NULL, input.size, &input, NULL);
    cornu__input_close(&input);
    return cornu__loaded(table);
}
