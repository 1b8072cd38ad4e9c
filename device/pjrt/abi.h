/*
 * The PJRT C interface, as far as it is used here: what a plugin's one function, GetPjrtApi,
 * returns. Declared here rather than by XLA's header, so that no package is needed to build; every
 * size below is that of API 0.81, which plugins up to 0.117 accept, since later versions only
 * append. Source: openxla/xla, xla/pjrt/c/pjrt_c_api.h and the CHANGELOG beside it.
 *
 * Every function takes one struct, which begins with its size, and returns NULL or an error; they
 * are called by cornu__pjrt_call. Fields marked "out" are filled by the plugin.
 */
#ifndef CORNU_DEVICE_PJRT_ABI_H
#define CORNU_DEVICE_PJRT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Functions by their place in the table. */
typedef enum {
    PJRT_ERROR_DESTROY = 0, PJRT_ERROR_MESSAGE = 1, PJRT_ERROR_GET_CODE = 2,
    PJRT_PLUGIN_INITIALIZE = 3, PJRT_PLUGIN_ATTRIBUTES = 4,
    PJRT_EVENT_DESTROY = 5, PJRT_EVENT_AWAIT = 8,
    PJRT_CLIENT_CREATE = 10, PJRT_CLIENT_DESTROY = 11, PJRT_CLIENT_PLATFORM_NAME = 12,
    PJRT_CLIENT_PLATFORM_VERSION = 14, PJRT_CLIENT_ADDRESSABLE_DEVICES = 16,
    PJRT_CLIENT_COMPILE = 20, PJRT_CLIENT_BUFFER_FROM_HOST = 22,
    PJRT_DESCRIPTION_ID = 23, PJRT_DESCRIPTION_KIND = 26, PJRT_DEVICE_GET_DESCRIPTION = 29,
    PJRT_DEVICE_MEMORY_STATS = 34,
    PJRT_EXECUTABLE_DESTROY = 40, PJRT_EXECUTABLE_COST_ANALYSIS = 46,
    PJRT_EXECUTABLE_OPTIMIZED_PROGRAM = 48,
    PJRT_EXECUTABLE_SERIALIZE = 49, PJRT_LOADED_DESTROY = 50, PJRT_LOADED_GET_EXECUTABLE = 51,
    PJRT_LOADED_EXECUTE = 55, PJRT_DESERIALIZE_AND_LOAD = 56,
    PJRT_BUFFER_DESTROY = 58, PJRT_BUFFER_TO_HOST = 70, PJRT_BUFFER_READY_EVENT = 72,
    PJRT_TOPOLOGY_CREATE = 82, PJRT_TOPOLOGY_DESTROY = 83, PJRT_TOPOLOGY_PLATFORM_NAME = 84,
    PJRT_TOPOLOGY_DESCRIPTIONS = 86,
    PJRT_COMPILE = 89, PJRT_EXECUTABLE_MEMORY_STATS = 96,
} PjrtFunctionId;

typedef struct PjrtError      PjrtError;
typedef struct PjrtEvent      PjrtEvent;
typedef struct PjrtClient     PjrtClient;
typedef struct PjrtDevice     PjrtDevice;
typedef struct PjrtDescription PjrtDescription;
typedef struct PjrtBuffer     PjrtBuffer;
typedef struct PjrtExecutable PjrtExecutable;   /* compiled */
typedef struct PjrtLoaded     PjrtLoaded;       /* and loaded on devices */
typedef struct PjrtTopology   PjrtTopology;

typedef PjrtError *PjrtFunction(void *arguments);

typedef struct {
    size_t size;
    void  *extension;
} PjrtHead;

typedef struct {
    PjrtHead head;
    struct { PjrtHead head; int major, minor; } version;
    PjrtFunction *function[];   /* as many as fit into head.size */
} PjrtApi;

typedef const PjrtApi *PjrtGetApi(void);

/* Arguments of type T with these fields, the others zero. */
#define PJRT_ARGUMENTS(T, ...) { .head = { sizeof(T), NULL }, __VA_ARGS__ }

/* ---- Errors and events ---- */

typedef struct { PjrtHead head; PjrtError *error; } PjrtErrorDestroy;
typedef struct {
    PjrtHead head;
    const PjrtError *error;
    const char *message;   /* out, not terminated */
    size_t size;           /* out */
} PjrtErrorMessage;
typedef struct { PjrtHead head; const PjrtError *error; int code; /* out */ } PjrtErrorGetCode;

/* Codes are those of abseil's statuses. */
enum { PJRT_INVALID_ARGUMENT = 3, PJRT_NOT_FOUND = 5, PJRT_RESOURCE_EXHAUSTED = 8,
       PJRT_UNIMPLEMENTED = 12, PJRT_INTERNAL = 13, PJRT_UNAVAILABLE = 14 };

typedef struct { PjrtHead head; PjrtEvent *event; } PjrtEventCall;   /* destroy, error, await */

/* ---- Plugin and client ---- */

enum { PJRT_STRING, PJRT_INT64, PJRT_INT64_LIST, PJRT_FLOAT, PJRT_BOOL };

typedef struct {
    PjrtHead    head;
    const char *name;
    size_t      name_size;
    int         type;
    union {
        const char    *string;
        int64_t        int64;
        const int64_t *int64_list;
        float          real;
        bool           boolean;
    } value;
    size_t value_size;   /* characters, elements; 1 for a single value */
} PjrtNamedValue;

typedef struct { PjrtHead head; } PjrtPluginInitialize;
typedef struct {
    PjrtHead              head;
    const PjrtNamedValue *attributes;   /* out */
    size_t                count;        /* out */
} PjrtPluginAttributes;

typedef struct {
    PjrtHead              head;
    const PjrtNamedValue *options;
    size_t                option_count;
    void *get, *get_context, *put, *put_context;
    PjrtClient           *client;   /* out */
    void *try_get, *try_get_context;
} PjrtClientCreate;
typedef struct { PjrtHead head; PjrtClient *client; } PjrtClientDestroy;
typedef struct {
    PjrtHead    head;
    PjrtClient *client;
    const char *text;   /* out */
    size_t      size;   /* out */
} PjrtClientText;       /* platform name, platform version */
typedef struct {
    PjrtHead           head;
    PjrtClient        *client;
    PjrtDevice *const *devices;   /* out */
    size_t             count;     /* out */
} PjrtClientDevices;

typedef struct { PjrtHead head; PjrtDevice *device; PjrtDescription *description; /* out */ }
    PjrtDeviceGetDescription;
typedef struct { PjrtHead head; PjrtDescription *description; int id; /* out */ }
    PjrtDescriptionId;
typedef struct {
    PjrtHead         head;
    PjrtDescription *description;
    const char      *text;   /* out */
    size_t           size;   /* out */
} PjrtDescriptionText;
typedef struct {
    PjrtHead    head;
    PjrtDevice *device;
    int64_t     in_use;                                  /* out, bytes; so are all others */
    struct { int64_t bytes; bool set; } peak, allocations, largest, limit, reserved,
                                        peak_reserved, reservable, largest_free, pool, peak_pool;
} PjrtDeviceMemoryStats;

/* ---- Compiling ---- */

typedef struct {
    PjrtHead    head;
    const char *code;
    size_t      code_size;
    const char *format;
    size_t      format_size;
} PjrtProgram;
typedef struct {
    PjrtHead           head;
    PjrtClient        *client;
    const PjrtProgram *program;
    const char        *options;   /* a CompileOptionsProto */
    size_t             options_size;
    PjrtLoaded        *loaded;    /* out */
} PjrtClientCompile;
typedef struct { PjrtHead head; PjrtLoaded *loaded; PjrtExecutable *executable; /* out */ }
    PjrtLoadedGetExecutable;
typedef struct { PjrtHead head; PjrtLoaded *loaded; } PjrtLoadedDestroy;
typedef struct { PjrtHead head; PjrtExecutable *executable; } PjrtExecutableDestroy;
typedef struct { PjrtHead head; PjrtExecutable *executable; PjrtProgram *program; }
    PjrtExecutableOptimizedProgram;
typedef struct {
    PjrtHead              head;
    PjrtExecutable       *executable;
    size_t                count;        /* out */
    const PjrtNamedValue *properties;   /* out */
} PjrtExecutableCostAnalysis;
typedef struct {
    PjrtHead        head;
    PjrtExecutable *executable;
    int64_t         code, arguments, outputs, aliases, temporaries;   /* out, bytes */
    int64_t         host_code, host_arguments, host_outputs, host_aliases, host_temporaries;
    int64_t         peak;                                             /* out, from 0.80 on */
} PjrtExecutableMemoryStats;
typedef struct {
    PjrtHead              head;
    const PjrtExecutable *executable;
    const char           *bytes;   /* out, as long as `owner` lives */
    size_t                size;    /* out */
    void                 *owner;   /* out */
    void (*release)(void *owner);  /* out */
} PjrtExecutableSerialize;
typedef struct {
    PjrtHead    head;
    PjrtClient *client;
    const char *bytes;
    size_t      size;
    PjrtLoaded *loaded;    /* out */
    const char *options;   /* over those that were serialized; NULL: these */
    size_t      options_size;
} PjrtDeserializeAndLoad;

typedef struct {
    PjrtHead              head;
    const char           *name;
    size_t                name_size;
    const PjrtNamedValue *options;
    size_t                option_count;
    PjrtTopology         *topology;   /* out */
} PjrtTopologyCreate;
typedef struct { PjrtHead head; PjrtTopology *topology; } PjrtTopologyDestroy;
typedef struct {
    PjrtHead      head;
    PjrtTopology *topology;
    const char   *text;   /* out */
    size_t        size;   /* out */
} PjrtTopologyText;
typedef struct {
    PjrtHead                head;
    PjrtTopology           *topology;
    PjrtDescription *const *descriptions;   /* out */
    size_t                  count;          /* out */
} PjrtTopologyDescriptions;
typedef struct {
    PjrtHead            head;
    const PjrtTopology *topology;
    const PjrtProgram  *program;
    const char         *options;
    size_t              options_size;
    PjrtClient         *client;       /* may be NULL */
    PjrtExecutable     *executable;   /* out */
} PjrtCompile;

/* ---- Buffers and running ---- */

typedef enum {
    PJRT_PRED = 1, PJRT_S32 = 4, PJRT_S64 = 5, PJRT_U8 = 6, PJRT_U32 = 8, PJRT_U64 = 9,
    PJRT_F16 = 10, PJRT_F32 = 11, PJRT_F64 = 12, PJRT_BF16 = 13,
} PjrtType;

/* What the plugin may do with host memory: read it during the call alone. */
enum { PJRT_DURING_CALL = 0 };

typedef struct {
    PjrtHead       head;
    PjrtClient    *client;
    const void    *data;
    int            type;
    const int64_t *extents;
    size_t         rank;
    const int64_t *strides;   /* NULL: row-major */
    size_t         stride_count;
    int            semantics;
    PjrtDevice    *device;
    void          *memory;    /* NULL: the device's default */
    void          *layout;    /* NULL: the device's default */
    PjrtEvent     *done;      /* out: `data` is no longer read */
    PjrtBuffer    *buffer;    /* out */
} PjrtBufferFromHost;

typedef struct {
    PjrtHead       head;
    const int64_t *minor_to_major;
    size_t         rank;
    const int64_t *tiles;
    const size_t  *tile_ranks;
    size_t         tile_count;
} PjrtTiled;
typedef struct {
    PjrtHead  head;
    PjrtTiled tiled;
    int       kind;   /* 0: tiled */
} PjrtLayout;

typedef struct {
    PjrtHead    head;
    PjrtBuffer *buffer;
    PjrtLayout *layout;   /* NULL: that of the device */
    void       *to;
    size_t      size;
    PjrtEvent  *done;     /* out */
} PjrtBufferToHost;
typedef struct { PjrtHead head; PjrtBuffer *buffer; } PjrtBufferDestroy;
typedef struct { PjrtHead head; PjrtBuffer *buffer; PjrtEvent *event; /* out */ } PjrtBufferReady;

typedef struct {
    PjrtHead       head;
    void          *send, *receive;
    size_t         send_count, receive_count;
    int            launch;
    const int64_t *kept;   /* arguments that are not donated in this run */
    size_t         kept_count;
    void          *context, *call_location;
    size_t         task_count;
    void          *task_ids, *incarnations;
} PjrtExecuteOptions;
typedef struct {
    PjrtHead                  head;
    PjrtLoaded               *loaded;
    PjrtExecuteOptions       *options;
    PjrtBuffer *const *const *arguments;   /* by device */
    size_t                    device_count, argument_count;
    PjrtBuffer **const       *outputs;     /* by device; allocated by the caller, out */
    PjrtEvent               **done;        /* by device, out; NULL: not wanted */
    PjrtDevice               *device;      /* NULL: those that it was compiled for */
} PjrtLoadedExecute;

/* ---- Extensions: a list, of what a plugin has beyond its table ---- */

typedef struct PjrtExtension {
    size_t                      size;
    int                         type;
    const struct PjrtExtension *next;
} PjrtExtension;

enum { PJRT_PROFILER_EXTENSION = 1 };

/* The profiler, which has structs and errors of its own. Source: openxla/xla,
 * xla/backends/profiler/plugin/profiler_c_api.h. */
typedef struct PjrtProfiler      PjrtProfiler;
typedef struct PjrtProfilerError PjrtProfilerError;

typedef struct { size_t size; void *reserved; PjrtProfilerError *error; } PjrtProfilerErrorDestroy;
typedef struct {
    size_t                   size;
    void                    *reserved;
    const PjrtProfilerError *error;
    const char              *message;        /* out, not terminated */
    size_t                   message_size;   /* out */
} PjrtProfilerErrorMessage;
typedef struct {
    size_t        size;
    const char   *options;    /* a ProfileOptions */
    size_t        options_size;
    PjrtProfiler *profiler;   /* out */
} PjrtProfilerCreate;
typedef struct { size_t size; PjrtProfiler *profiler; }
    PjrtProfilerCall;   /* destroy, start, stop */
typedef struct {
    size_t         size;
    PjrtProfiler  *profiler;
    unsigned char *bytes;        /* an XSpace, and a zero byte. NULL: asks for its size; then out,
                                    if the profiler has a buffer of its own */
    size_t         bytes_size;   /* out */
} PjrtProfilerCollect;

typedef PjrtProfilerError *PjrtProfilerFunction(void *arguments);

typedef struct {
    size_t size;
    void  *reserved;
    void (*error_destroy)(void *arguments);
    void (*error_message)(void *arguments);
    PjrtProfilerFunction *error_get_code, *create, *destroy, *start, *stop, *collect;
} PjrtProfilerApi;

typedef struct {
    PjrtExtension          head;
    const PjrtProfilerApi *api;
    int64_t                context;
} PjrtProfilerExtension;

#endif
