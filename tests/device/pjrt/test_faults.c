/* Calls of the plugin that fail in the middle of a training: an error in its words, nothing lost
 * track of, and a device that works again. The plugin refuses arguments of a size that it cannot
 * know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <cornu/device/pjrt/client.h>

#include "../../expect.h"
#include "../programs.h"
#include "opened.h"

enum { RUNS = 9, COLLECTED = 3 };

/* ---- A plugin with a fault ---- */

static union {
    PjrtApi api;
    char    bytes[4096];
} table;
static CornuPjrtPlugin plugin;
static PjrtFunction   *intact;
static int             calls_to_go;   /* until the one that fails; negative: none does */

static PjrtError *fail_once(void *arguments)
{
    if (calls_to_go-- == 0) ((PjrtHead *)arguments)->size = 1;
    return intact(arguments);
}

/* Call `number` of the function will fail; -1: none. */
static void break_function(CornuDevice *device, PjrtFunctionId id, int number)
{
    CornuPjrtDevice *own = cornu__pjrt_of(device);
    if (own->plugin != &plugin) {
        plugin = *own->plugin;
        assert_in_range(plugin.api->head.size, sizeof table.api, sizeof table);
        memcpy(table.bytes, plugin.api, plugin.api->head.size);
        plugin.api = &table.api;
        own->plugin = &plugin;
    }
    calls_to_go = number;
    intact = table.api.function[id];
    table.api.function[id] = fail_once;
}

static void mend_function(PjrtFunctionId id) { table.api.function[id] = intact; }

/* ---- A training ---- */

/* sum <- sum + fed, checked to be below 100 as an index is. */
typedef struct {
    CornuDevice     *device;
    CornuExecutable *executable;
    CornuBuffer     *in[3];   /* sum, fed, table */
} Subject;

static void open_subject(Subject *s)
{
    static float  numbers[100];
    CornuProgram *p = cornu_program_create();
    CornuValue    in[3] = { input(p, cornu_type(CORNU_F32, 1, 1)),
                            input(p, cornu_type(CORNU_I32, 1)),
                            input(p, cornu_type(CORNU_F32, 100, 1)) };
    output(p, op2(p, CORNU_OP_ADD, in[0], op2(p, CORNU_OP_GATHER, in[2], in[1])), 0);
    s->device = pjrt_open(1);
    s->executable = cornu_device_compile(s->device, p);
    if (!s->executable) fail_msg("%s", cornu_error_message());
    for (int i = 0; i < 3; i++) {
        s->in[i] = cornu_buffer_create(s->device, cornu_program_type(p, p->inputs[i]),
                                       .use = i == 1 ? CORNU_USE_INFEED : CORNU_USE_OTHER);
        assert_non_null(s->in[i]);
    }
    for (int i = 0; i < 100; i++) numbers[i] = (float)i;
    expect_ok(cornu_buffer_write(s->in[2], cornu_array(numbers, CORNU_F32, 100, 1)));
    cornu_program_free(p);
}

static void close_subject(Subject *s)
{
    for (int i = 0; i < 3; i++) cornu_buffer_free(s->in[i]);
    cornu_executable_release(s->executable);
    cornu_device_close(s->device);
}

/* From a sum of 0, feeds 1 to RUNS and reads the sum; the first failure. */
static CornuStatus train(Subject *s, bool collects, float *sum)
{
    *sum = 0.0f;
    CornuStatus status = cornu_buffer_write(s->in[0], cornu_array(sum, CORNU_F32, 1, 1));
    for (int32_t i = 1; i <= RUNS && !status; i++) {
        if (collects && (i - 1) % COLLECTED == 0)
            cornu_executable_collect(s->executable, COLLECTED);
        status = cornu_buffer_write(s->in[1], cornu_array(&i, CORNU_I32, 1));
        if (!status)
            status = cornu_executable_run(s->executable, s->in, (CornuBuffer *[1]){ NULL });
    }
    return status ? status : cornu_buffer_read(s->in[0], cornu_array(sum, CORNU_F32, 1, 1));
}

/* ---- Faults ---- */

typedef struct {
    const char    *name;
    PjrtFunctionId id;
} Fault;

/* The function is broken at its first call, its second, and so on, until training no longer calls
 * it so often. After each failure the same device trains to the right sum. */
static void it_recovers(void **state)
{
    const Fault *fault = *state;
    for (int collects = 0; collects <= 1; collects++) {
        Subject s;
        float   sum;
        int     number = 0;
        open_subject(&s);
        expect_ok(train(&s, collects, &sum));   /* which compiles the loop */
        for (bool failed = true; failed; number++) {
            assert_in_range(number, 0, 100);
            break_function(s.device, fault->id, number);
            const CornuStatus status = train(&s, collects, &sum);
            failed = calls_to_go < 0;
            mend_function(fault->id);
            if (failed) {
                char called[60];
                snprintf(called, sizeof called, "pjrt: PJRT_%s: ", fault->name);
                expect_error(status, CORNU_ERR_DEVICE, called);
                cornu_device_wait(s.device);   /* of runs begun after it, whatever they are */
                cornu_error_take();
            } else {
                expect_ok(status);
            }
            expect_ok(train(&s, collects, &sum));
            assert_float_equal(sum, RUNS * (RUNS + 1) / 2, 0.0);
        }
        if (number < 2) fail_msg("%s was called %d times", fault->name, number - 1);
        close_subject(&s);
    }
}

int main(void)
{
    static Fault faults[] = {
        { "LoadedExecutable_Execute", PJRT_LOADED_EXECUTE },
        { "Client_BufferFromHostBuffer", PJRT_CLIENT_BUFFER_FROM_HOST },
        { "Buffer_ToHostBuffer", PJRT_BUFFER_TO_HOST },
        { "Event_Await", PJRT_EVENT_AWAIT },
    };
    const struct CMUnitTest tests[] = {
        { "execute", it_recovers, NULL, NULL, &faults[0] },
        { "buffer_from_host", it_recovers, NULL, NULL, &faults[1] },
        { "buffer_to_host", it_recovers, NULL, NULL, &faults[2] },
        { "event_await", it_recovers, NULL, NULL, &faults[3] },
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
