/* Text of StableHLO, piece by piece. */
#include <stdarg.h>
#include <string.h>

#include "../../memory_internal.h"
#include "../../text/print.h"
#include "emit.h"

static const char *element_name(PjrtType element)
{
    switch (element) {
    case PJRT_PRED: return "i1";
    case PJRT_S32:  return "i32";
    case PJRT_S64:  return "i64";
    case PJRT_U8:   return "ui8";
    case PJRT_U32:  return "ui32";
    case PJRT_U64:  return "ui64";
    case PJRT_F16:  return "f16";
    case PJRT_F32:  return "f32";
    case PJRT_F64:  return "f64";
    case PJRT_BF16: return "bf16";
    }
    return "none";
}

PjrtType cornu__pjrt_type(CornuDtype dtype)
{
    switch (dtype) {
    case CORNU_F32:  return PJRT_F32;
    case CORNU_F64:  return PJRT_F64;
    case CORNU_BF16: return PJRT_BF16;
    case CORNU_F16:  return PJRT_F16;
    case CORNU_I64:  return PJRT_S64;
    case CORNU_I32:  return PJRT_S32;
    case CORNU_U32:  return PJRT_U32;
    case CORNU_U8:   return PJRT_U8;
    case CORNU_BOOL: case CORNU_DTYPE_COUNT: break;
    }
    return PJRT_PRED;
}

bool cornu__hlo_is_float(PjrtType element)
{
    return element == PJRT_F16 || element == PJRT_F32 || element == PJRT_F64 ||
           element == PJRT_BF16;
}

/* ---- Types ---- */

CornuHloType cornu__hlo_type(CornuType type)
{
    return (CornuHloType){ cornu__pjrt_type(type.dtype), type.shape };
}

CornuHloType cornu__hlo_of(const CornuEmitter *e, CornuName x)
{
    return e->status == CORNU_OK ? e->types[x] : cornu__hlo_scalar(PJRT_F32);
}

CornuHloType cornu__hlo_scalar(PjrtType element)
{
    return (CornuHloType){ .element = element };
}

CornuHloType cornu__hlo_as(CornuHloType type, PjrtType element)
{
    type.element = element;
    return type;
}

CornuHloType cornu__hlo_shaped(CornuHloType type, CornuShape shape)
{
    type.shape = shape;
    return type;
}

/* ---- Text ---- */

/* Room for `extra` characters and the terminator. */
static CornuStatus reserve_text(CornuEmitter *e, size_t extra)
{
    CornuModule *module = e->module;
    const size_t needed = module->size + extra + 1;
    if (needed <= e->text_space) return CORNU_OK;
    const size_t space = needed > 2 * e->text_space ? needed + 4096 : 2 * e->text_space;
    char        *text = cornu__allocate(space, 1);
    if (!text) return CORNU_ERR_MEMORY;
    if (module->text) memcpy(text, module->text, module->size + 1);
    cornu__release(module->text);
    module->text = text;
    e->text_space = space;
    return CORNU_OK;
}

void cornu__write(CornuEmitter *e, const char *format, ...)
{
    char    piece[512];
    va_list arguments;
    if (e->status != CORNU_OK) return;
    va_start(arguments, format);
    const int length = cornu__vformat(piece, sizeof piece, format, arguments);
    va_end(arguments);
    const int    lines = e->module->size && e->module->text[e->module->size - 1] == '\n';
    const size_t indent = lines ? 2 * (size_t)e->depth : 0, size = (size_t)length;
    e->status = length < 0 || size >= sizeof piece
              ? cornu__fail(CORNU_ERR_UNSUPPORTED, "StableHLO: a piece of %d characters", length)
              : reserve_text(e, indent + size);
    if (e->status != CORNU_OK) return;
    char *to = e->module->text + e->module->size;
    memset(to, ' ', indent);
    memcpy(to + indent, piece, size + 1);
    e->module->size += indent + size;
}

void cornu__write_type(CornuEmitter *e, CornuHloType type)
{
    cornu__write(e, "tensor<");
    for (int i = 0; i < type.shape.rank; i++)
        cornu__write(e, "%lldx", (long long)type.shape.extent[i]);
    cornu__write(e, "%s>", element_name(type.element));
}

void cornu__write_array(CornuEmitter *e, const int64_t *numbers, int count)
{
    cornu__write(e, "array<i64");
    for (int i = 0; i < count; i++)
        cornu__write(e, "%s%lld", i ? ", " : ": ", (long long)numbers[i]);
    cornu__write(e, ">");
}

/* ---- Ops ---- */

CornuName cornu__name(CornuEmitter *e, CornuHloType type)
{
    if (e->status == CORNU_OK)
        e->status = cornu__reserve(&e->types, &e->type_space, e->names, 1, sizeof *e->types);
    if (e->status != CORNU_OK) return 0;
    e->types[e->names] = type;
    return e->names++;
}

void cornu__write_names(CornuEmitter *e, const CornuName *names, int count)
{
    for (int i = 0; i < count; i++) cornu__write(e, "%s%%%d", i ? ", " : "", names[i]);
}

void cornu__write_types(CornuEmitter *e, const CornuName *names, int count)
{
    cornu__write(e, "(");
    for (int i = 0; i < count; i++) {
        if (i) cornu__write(e, ", ");
        cornu__write_type(e, cornu__hlo_of(e, names[i]));
    }
    cornu__write(e, ")");
}

CornuName cornu__begin(CornuEmitter *e, const char *name, CornuHloType type, const CornuName *in,
                       int in_count)
{
    const CornuName result = cornu__name(e, type);
    cornu__write(e, "%%%d = \"%s%s\"(", result, strchr(name, '.') ? "" : "stablehlo.", name);
    cornu__write_names(e, in, in_count);
    cornu__write(e, ")");
    return result;
}

void cornu__end(CornuEmitter *e, CornuName result, const CornuName *in, int in_count)
{
    cornu__write(e, " : ");
    cornu__write_types(e, in, in_count);
    cornu__write(e, " -> ");
    cornu__write_type(e, cornu__hlo_of(e, result));
    cornu__write(e, "\n");
}

void cornu__write_return(CornuEmitter *e, const char *op, const CornuName *names, int count)
{
    cornu__write(e, "\"%s\"(", op);
    cornu__write_names(e, names, count);
    cornu__write(e, ") : ");
    cornu__write_types(e, names, count);
    cornu__write(e, " -> ()\n");
}
