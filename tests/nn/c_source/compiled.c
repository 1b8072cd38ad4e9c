#include "compiled.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../datasets/files.h"
#include "../../expect.h"

bool has_compiler(void) { return system("cc --version >/dev/null 2>&1") == 0; }

static void run(const char *command)
{
    if (system(command) != 0) fail_msg("%s", command);
}

void compiles(const char *compiler, const char *name)
{
    char command[2048];
    snprintf(command, sizeof command, "%s -Wall -Wextra -Wconversion -Werror -ffreestanding -c "
             "'%s/%s.c' -o '%s/%s.o'", compiler, folder, name, folder, name);
    run(command);
}

/* Functions of fixed names around those of the model, with its memory. */
static void write_shim(const char *name, bool train)
{
    char  path[FILES_PATH + 80], capitals[64];
    FILE *to;
    snprintf(path, sizeof path, "%s/%s_shim.c", folder, name);
    assert_non_null(to = fopen(path, "w"));
    for (size_t i = 0; i <= strlen(name); i++)
        capitals[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
    fprintf(to, "#include \"%s.h\"\n", name);
    fprintf(to, "static union { double d; unsigned char of[%s_SCRATCH_BYTES]; } scratch;\n",
            capitals);
    if (!train) {
        fprintf(to, "void shim_predict(const void *x, void *y)\n"
                "{ %s_predict(&%s_trained, &scratch, x, y); }\n", name, name);
    } else {
        fprintf(to, "static union { double d; unsigned char of[%s_STEP_SCRATCH_BYTES]; } step;\n"
                "static %s_state state;\n"
                "void shim_init(void) { %s_init(&state); }\n"
                "void shim_step(const void *x, const void *y) { %s_step(&state, &step, x, y); }\n"
                "void shim_predict(const void *x, void *y)\n"
                "{ %s_predict(&state.weights, &scratch, x, y); }\n"
                "void shim_save(unsigned char *bytes) { %s_save(&state, bytes); }\n"
                "void shim_load(const unsigned char *bytes) { %s_load(&state, bytes); }\n"
                "size_t shim_bytes(void) { return %s_WEIGHTS_BYTES; }\n",
                capitals, name, name, name, name, name, name, capitals);
    }
    assert_int_equal(fclose(to), 0);
}

static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    if (!found) fail_msg("%s", dlerror());
}

Compiled compiled_open(const char *name, CornuModel *model, bool train, int64_t batch_size)
{
    Compiled compiled = { 0 };
    char     path[FILES_PATH + 80], command[2048];
    snprintf(path, sizeof path, "%s/%s.c", folder, name);
    expect_ok(cornu_compile_to_c(model, path, .train = train, .batch_size = batch_size));
    write_shim(name, train);
    snprintf(command, sizeof command, "cd '%s' && cc -std=c99 -O1 -Wall -Wextra -Wconversion "
             "-Werror -fsanitize=undefined -fno-sanitize-recover=all -shared -fPIC %s.c %s_shim.c "
             "-o %s.so -lm", folder, name, name, name);
    run(command);
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    compiled.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!compiled.library) fail_msg("%s", dlerror());
    find(compiled.library, "shim_predict", &compiled.predict);
    if (!train) return compiled;
    find(compiled.library, "shim_init", &compiled.init);
    find(compiled.library, "shim_step", &compiled.step);
    find(compiled.library, "shim_save", &compiled.save);
    find(compiled.library, "shim_load", &compiled.load);
    find(compiled.library, "shim_bytes", &compiled.bytes);
    return compiled;
}

void compiled_close(Compiled *compiled) { dlclose(compiled->library); }
