/* Tensors of ONNX files: their numbers in any of the forms that they are stored in. */
#define _XOPEN_SOURCE 700    /* realpath */
#include "tensors_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../device/memory_internal.h"

CornuStatus cornu__onnx_dtype(int64_t type, CornuDtype *dtype)
{
    switch (type) {
    case CORNU_READ_FLOAT: case CORNU_READ_FLOAT16: case CORNU_READ_BFLOAT16:
        *dtype = CORNU_F32;
        return CORNU_OK;
    case CORNU_READ_INT8: case CORNU_READ_INT16: case CORNU_READ_UINT16: case CORNU_READ_INT32:
        *dtype = CORNU_I32;
        return CORNU_OK;
    case CORNU_READ_INT64: case CORNU_READ_UINT64: *dtype = CORNU_I64;  return CORNU_OK;
    case CORNU_READ_DOUBLE:                        *dtype = CORNU_F64;  return CORNU_OK;
    case CORNU_READ_UINT32:                        *dtype = CORNU_U32;  return CORNU_OK;
    case CORNU_READ_UINT8:                         *dtype = CORNU_U8;   return CORNU_OK;
    case CORNU_READ_BOOL:                          *dtype = CORNU_BOOL; return CORNU_OK;
    default:
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "elements of type %lld of ONNX, expected floats, "
                           "integers of 8 to 64 bits or booleans", (long long)type);
    }
}

int cornu__onnx_type_number(CornuDtype dtype)
{
    switch (dtype) {
    case CORNU_F64:  return CORNU_READ_DOUBLE;
    case CORNU_I64:  return CORNU_READ_INT64;
    case CORNU_I32:  return CORNU_READ_INT32;
    case CORNU_U32:  return CORNU_READ_UINT32;
    case CORNU_U8:   return CORNU_READ_UINT8;
    case CORNU_BOOL: return CORNU_READ_BOOL;
    default:         return CORNU_READ_FLOAT;
    }
}

bool cornu__onnx_is_narrow(int64_t type)
{
    return type == CORNU_READ_INT8 || type == CORNU_READ_INT16 || type == CORNU_READ_UINT16;
}

size_t cornu__onnx_type_size(int64_t type)
{
    switch (type) {
    case CORNU_READ_UINT8: case CORNU_READ_INT8: case CORNU_READ_BOOL: return 1;
    case CORNU_READ_UINT16: case CORNU_READ_INT16: case CORNU_READ_FLOAT16:
    case CORNU_READ_BFLOAT16: return 2;
    case CORNU_READ_FLOAT: case CORNU_READ_INT32: case CORNU_READ_UINT32: return 4;
    case CORNU_READ_INT64: case CORNU_READ_UINT64: case CORNU_READ_DOUBLE: return 8;
    default: return 0;
    }
}

/* Stores element i, whose bits are as raw data have them. */
static void store(CornuArray to, int64_t i, int64_t type, uint64_t bits)
{
    switch (type) {
    case CORNU_READ_FLOAT:    ((float *)to.data)[i] = cornu__float_of(bits); break;
    case CORNU_READ_DOUBLE:   ((double *)to.data)[i] = cornu__double_of(bits); break;
    case CORNU_READ_FLOAT16:  ((float *)to.data)[i] = cornu_f16_to_float((uint16_t)bits); break;
    case CORNU_READ_BFLOAT16: ((float *)to.data)[i] = cornu_bf16_to_float((uint16_t)bits); break;
    case CORNU_READ_INT8:     ((int32_t *)to.data)[i] = (int32_t)(int8_t)bits; break;
    case CORNU_READ_INT16:    ((int32_t *)to.data)[i] = (int16_t)bits; break;
    case CORNU_READ_UINT16:   ((int32_t *)to.data)[i] = (uint16_t)bits; break;
    case CORNU_READ_INT32:    ((int32_t *)to.data)[i] = (int32_t)bits; break;
    case CORNU_READ_UINT32:   ((uint32_t *)to.data)[i] = (uint32_t)bits; break;
    case CORNU_READ_UINT8:    ((uint8_t *)to.data)[i] = (uint8_t)bits; break;
    case CORNU_READ_BOOL:     ((uint8_t *)to.data)[i] = (uint8_t)bits != 0; break;
    default:                  ((int64_t *)to.data)[i] = (int64_t)bits; break;
    }
}

const char *cornu__onnx_role_name(CornuReadRole role)
{
    static const char *const names[] = { "value", "weight", "filter", "state", "constant" };
    return names[role];
}

CornuShape cornu__filter_shape(CornuShape shape, int order[CORNU_MAX_RANK])
{
    CornuShape to = shape;
    for (int i = 0; i < shape.rank; i++) {
        order[i] = shape.rank < 3 ? i : i < shape.rank - 2 ? i + 2 : shape.rank - 1 - i;
        to.extent[i] = shape.extent[order[i]];
    }
    return to;
}

/* A message TensorProto, before its numbers are read. */
typedef struct {
    int64_t            type, extents[CORNU_MAX_RANK];
    int                rank;
    CornuProtobufField raw, *lists;      /* raw.bytes NULL: none */
    int                list_count;
    const char        *name, *role;
    CornuProtobufField location;         /* of external data */
    uint64_t           offset, length;
    bool               external, sized;
} Message;

static CornuStatus read_extents(Message *message, const CornuProtobufField *field)
{
    const int64_t count = cornu__count_numbers(field, CORNU_PROTOBUF_VARINT);
    CornuFields   list = cornu__fields(field->bytes, field->size);
    if (count < 0) return cornu__onnx_damaged("a tensor");
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = field->bits;
        if (field->kind == CORNU_PROTOBUF_BYTES)
            cornu__next_number(&list, CORNU_PROTOBUF_VARINT, &bits);
        if (message->rank == CORNU_MAX_RANK)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor %.100s has more than %d axes",
                               message->name, CORNU_MAX_RANK);
        message->extents[message->rank++] = (int64_t)bits;
    }
    return CORNU_OK;
}

/* A number of bytes in a file, which is written in decimal digits. */
static CornuStatus read_bytes_count(const Message *message, const char *what,
                                    const CornuProtobufField *text, uint64_t *to)
{
    uint64_t number = 0;
    bool     good = text->size > 0;
    for (size_t i = 0; i < text->size && good; i++) {
        const unsigned digit = (unsigned)text->bytes[i] - '0';
        good = digit < 10 && number <= (UINT64_MAX - digit) / 10;
        number = 10 * number + digit;
    }
    if (good) {
        *to = number;
        return CORNU_OK;
    }
    return cornu__fail(CORNU_ERR_FORMAT, "the tensor %.100s has external data with the %s "
                       "\"%.*s\", expected a number of bytes", message->name, what,
                       text->size < 40 ? (int)text->size : 40, (const char *)text->bytes);
}

/* An entry of external_data: key and value. */
static CornuStatus read_entry(Message *message, const CornuProtobufField *from)
{
    CornuFields        fields = cornu__fields(from->bytes, from->size);
    CornuProtobufField field, key = { 0 }, value = { 0 };
    while (cornu__next_field(&fields, &field)) {
        if (field.kind != CORNU_PROTOBUF_BYTES) continue;
        if (field.field == 1) key = field;
        if (field.field == 2) value = field;
    }
    if (fields.failed) return cornu__onnx_damaged("external data");
    if (key.size == 8 && !memcmp(key.bytes, "location", 8)) message->location = value;
    if (key.size == 6 && !memcmp(key.bytes, "offset", 6))
        return read_bytes_count(message, "offset", &value, &message->offset);
    if (key.size != 6 || memcmp(key.bytes, "length", 6)) return CORNU_OK;
    message->sized = true;
    return read_bytes_count(message, "length", &value, &message->length);
}

static CornuStatus read_message(CornuArena *arena, const void *bytes, size_t size,
                                Message *message)
{
    CornuFields        fields = cornu__fields(bytes, size);
    CornuProtobufField field;
    int                lists = 0;
    while (cornu__next_field(&fields, &field))
        lists += field.field >= 4 && field.field <= 11;
    message->name = message->role = "";
    message->lists = cornu__arena_take(arena, (size_t)lists, sizeof *message->lists);
    if (!message->lists) return CORNU_ERR_MEMORY;
    fields = cornu__fields(bytes, size);
    while (cornu__next_field(&fields, &field)) {
        const bool text = field.kind == CORNU_PROTOBUF_BYTES;
        switch (field.field) {
        case 1: CORNU__TRY(read_extents(message, &field)); break;
        case 2: message->type = (int64_t)field.bits; break;
        case 3: return cornu__fail(CORNU_ERR_UNSUPPORTED, "a tensor that is stored in segments");
        case 4: case 5: case 7: case 10: case 11:
            message->lists[message->list_count++] = field;
            break;
        case 8: case 12:
            if (!text) return cornu__onnx_damaged("a tensor");
            const char *copy = cornu__arena_text(arena, field.bytes, field.size);
            if (!copy) return CORNU_ERR_MEMORY;
            if (field.field == 8) message->name = copy;
            else message->role = copy;
            break;
        case 9:
            if (!text) return cornu__onnx_damaged("a tensor");
            message->raw = field;
            break;
        case 13:
            if (!text) return cornu__onnx_damaged("a tensor");
            CORNU__TRY(read_entry(message, &field));
            break;
        case 14: message->external = field.bits == 1; break;
        }
    }
    return fields.failed ? cornu__onnx_damaged("a tensor") : CORNU_OK;
}

/* ---- Where the numbers are ---- */

struct CornuReadFiles {
    struct CornuReadFiles *next;
    char                  *name;
    CornuFileBytes         file;
};

void cornu__onnx_close_files(CornuReadFiles **files)
{
    for (CornuReadFiles *file = *files, *next; file; file = next) {
        next = file->next;
        cornu__file_release(&file->file);
        cornu__release(file->name);
        cornu__release(file);
    }
    *files = NULL;
}

/* Writes the path of a name in the folder of a path. */
static bool put_beside(const char *path, const char *name, char to[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    const int   folder = slash ? (int)(slash - path) + 1 : 0;
    return snprintf(to, PATH_MAX, "%.*s%s", folder, path, name) < PATH_MAX;
}

/* Whether two paths without symbolic links are of one folder. */
static bool are_beside(const char *a, const char *b)
{
    const char *slash = strrchr(a, '/');
    return slash && !strncmp(a, b, (size_t)(slash - a) + 1) && !strchr(b + (slash - a) + 1, '/');
}

/* The path of external data, without symbolic links. Only a plain name is taken, and no link that
 * leads out of the folder of the model, as it is named or, in caches where both names are links
 * into one folder, as the name leads to it. */
static CornuStatus resolve(const char *model, const char *name, char to[PATH_MAX])
{
    char       path[PATH_MAX], real[PATH_MAX];
    const bool plain = *name && !strchr(name, '/') && !strchr(name, '\\') &&
                       strcmp(name, ".") && strcmp(name, "..") && put_beside(model, name, path);
    if (plain && !realpath(path, to))
        return cornu__fail(CORNU_ERR_FILE, "%.200s: %s", name, strerror(errno));
    bool inside = plain && realpath(model, real) && are_beside(real, to);
    if (plain && !inside && put_beside(model, ".", path) && realpath(path, real)) {
        const size_t end = strlen(real);
        if (end + 1 < PATH_MAX) memcpy(real + end, "/", 2);
        inside = end + 1 < PATH_MAX && are_beside(real, to);
    }
    return inside ? CORNU_OK
                  : cornu__fail(CORNU_ERR_FORMAT, "external data in \"%.100s\", expected the name "
                                "of a file beside the model", name);
}

/* The file of external data, which lies beside the model. */
static CornuStatus open_file(CornuReadFiles **files, const char *model, const char *name,
                             CornuFileBytes *to)
{
    for (CornuReadFiles *file = *files; file; file = file->next)
        if (!strcmp(file->name, name)) {
            *to = file->file;
            return CORNU_OK;
        }
    char path[PATH_MAX];
    CORNU__TRY(resolve(model, name, path));
    CornuReadFiles *file = cornu__allocate(1, sizeof *file);
    CornuStatus     status = file ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status && !(file->name = cornu__copy_text(name))) status = CORNU_ERR_MEMORY;
    if (!status) status = cornu__fail_prefix(cornu__file_read(&file->file, path), name);
    if (status) {
        if (file) cornu__release(file->name);
        cornu__release(file);
        return status;
    }
    file->next = *files;
    *files = file;
    *to = file->file;
    return CORNU_OK;
}

static CornuStatus find_external(CornuArena *arena, CornuReadFiles **files, const char *path,
                                 Message *message, size_t wanted)
{
    CornuFileBytes file = { NULL, 0 };
    if (!path || !files)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the tensor %.100s has external data, which are "
                           "read only for whole files", message->name);
    const char *name = cornu__arena_text(arena, message->location.bytes, message->location.size);
    if (!name) return CORNU_ERR_MEMORY;
    CORNU__TRY(open_file(files, path, name, &file));
    const uint64_t length = message->sized ? message->length : wanted;
    if (message->offset > file.size || length > file.size - message->offset)
        return cornu__fail(CORNU_ERR_FORMAT, "the tensor %.100s has %llu bytes from byte %llu of "
                           "%.100s on, which has %zu", message->name, (unsigned long long)length,
                           (unsigned long long)message->offset, name, file.size);
    message->raw = (CornuProtobufField){ .kind = CORNU_PROTOBUF_BYTES, .size = (size_t)length,
                                         .bytes = file.bytes + message->offset };
    return CORNU_OK;
}

/* ---- Reading the numbers ---- */

static CornuStatus wrong_count(const Message *message, int64_t count)
{
    return cornu__fail(CORNU_ERR_FORMAT, "the tensor %.100s has other than the %lld elements of "
                       "its shape", message->name, (long long)count);
}

static CornuStatus read_raw(const Message *message, CornuArray to, int64_t count)
{
    const size_t width = cornu__onnx_type_size(message->type);
    if (message->raw.size != (size_t)count * width) return wrong_count(message, count);
    if (width == cornu_dtype_size(to.type.dtype) && message->type != CORNU_READ_BOOL) {
        if (count) memcpy(to.data, message->raw.bytes, message->raw.size);
        return CORNU_OK;
    }
    for (int64_t i = 0; i < count; i++)
        store(to, i, message->type,
              cornu__little_endian(message->raw.bytes + (size_t)i * width, (int)width));
    return CORNU_OK;
}

static CornuProtobufKind kind_of_list(uint32_t field)
{
    return field == 4 ? CORNU_PROTOBUF_FIXED32 : field == 10 ? CORNU_PROTOBUF_FIXED64
                                                             : CORNU_PROTOBUF_VARINT;
}

static CornuStatus read_lists(const Message *message, CornuArray to, int64_t count)
{
    const uint32_t field = message->type == CORNU_READ_FLOAT    ? 4
                           : message->type == CORNU_READ_INT64  ? 7
                           : message->type == CORNU_READ_DOUBLE ? 10
                           : message->type == CORNU_READ_UINT64 ||
                             message->type == CORNU_READ_UINT32 ? 11 : 5;
    const CornuProtobufKind kind = kind_of_list(field);
    int64_t                 at = 0;
    for (int i = 0; i < message->list_count; i++) {
        const CornuProtobufField *list = &message->lists[i];
        const int64_t             numbers = cornu__count_numbers(list, kind);
        if (list->field != field) continue;
        if (numbers < 0) return cornu__onnx_damaged("a tensor");
        CornuFields rest = cornu__fields(list->bytes, list->size);
        for (int64_t k = 0; k < numbers; k++) {
            uint64_t bits = list->bits;
            if (list->kind == CORNU_PROTOBUF_BYTES) cornu__next_number(&rest, kind, &bits);
            if (at == count) return wrong_count(message, count);
            store(to, at++, message->type, bits);
        }
    }
    return at == count ? CORNU_OK : wrong_count(message, count);
}

/* Whether the data of so many elements can be in the message, before memory is taken. */
static bool can_hold(const Message *message, int64_t count)
{
    size_t bytes = message->raw.size;
    for (int i = 0; i < message->list_count; i++)
        bytes += message->lists[i].size ? message->lists[i].size : 8;
    return count <= (int64_t)(bytes < INT64_MAX ? bytes : INT64_MAX);
}

/* Whether the numbers can be used where they are; files of external data are closed too early. */
static bool lies_ready(const Message *message, CornuType type, int64_t count)
{
    const size_t size = cornu_dtype_size(type.dtype);
    return message->raw.bytes && !message->external && count > 0 &&
           message->type != CORNU_READ_BOOL && cornu__onnx_type_size(message->type) == size &&
           message->raw.size == (size_t)count * size && (uintptr_t)message->raw.bytes % size == 0;
}

CornuStatus cornu__onnx_read_tensor(CornuArena *arena, const void *bytes, size_t size,
                                    CornuReadFiles **files, const char *path,
                                    CornuReadTensor *tensor)
{
    Message   message = { 0 };
    CornuType type = { 0 };
    CORNU__TRY(read_message(arena, bytes, size, &message));
    CORNU__TRY(cornu__fail_prefix(cornu__onnx_dtype(message.type, &type.dtype), message.name));
    type.shape.rank = message.rank;
    memcpy(type.shape.extent, message.extents, sizeof message.extents);
    CORNU__TRY(cornu__fail_prefix(cornu_type_check(type), message.name));
    const int64_t count = cornu_type_count(type);
    *tensor = (CornuReadTensor){ .name = message.name, .array = { .type = type },
                                 .onnx_type = message.type };
    if (!files && !message.raw.bytes && !message.list_count && !message.external) {
        for (CornuReadRole role = CORNU_READ_WEIGHT; role <= CORNU_READ_MADE; role++)
            if (!strcmp(message.role, cornu__onnx_role_name(role))) tensor->role = role;
        if (tensor->role) return CORNU_OK;
    }
    if (message.external) {
        const size_t wanted = (size_t)count * cornu__onnx_type_size(message.type);
        CORNU__TRY(find_external(arena, files, path, &message, wanted));
    }
    if (!can_hold(&message, count)) return wrong_count(&message, count);
    if (files && lies_ready(&message, type, count)) {
        arena->taken += message.raw.size;   /* counts for what may be computed of it */
        tensor->array.data = (void *)(uintptr_t)message.raw.bytes;
        return CORNU_OK;
    }
    tensor->array.data = cornu__arena_take(arena, cornu_type_bytes(type), 1);
    if (!tensor->array.data) return CORNU_ERR_MEMORY;
    if (message.raw.bytes) return read_raw(&message, tensor->array, count);
    return read_lists(&message, tensor->array, count);
}

CornuStatus cornu__onnx_parse_tensor(CornuArena *arena, const void *bytes, size_t size,
                                     CornuReadTensor *tensor)
{
    return cornu__onnx_read_tensor(arena, bytes, size, NULL, NULL, tensor);
}
