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

/* The weights as they were written: an object of the .c file, or what a file has. */
static void write_weights(FILE *to, const char *name, const char *file)
{
    if (!file) {
        fprintf(to, "static const %s_weights *weights(void) { return &%s_trained; }\n", name, name);
        return;
    }
    fprintf(to, "#include <stdio.h>\n#include <stdlib.h>\n"
            "static const %s_weights *weights(void)\n{\n    static %s_weights w;\n"
            "    static FILE *from;\n    if (from) return &w;\n"
            "    if (!(from = fopen(\"%s\", \"rb\")) || fread(&w, sizeof w, 1, from) != 1 ||\n"
            "        fgetc(from) != EOF) abort();\n    return &w;\n}\n", name, name, file);
}

/* Functions of fixed names around those of the model, with its memory. */
static void write_shim(const char *name, const CornuCompileToCConfig *config)
{
    const bool train = config->train;
    char  path[FILES_PATH + 80], capitals[64], x[CORNU_MAX_MODEL_TENSORS * 7 + 1] = "";
    for (int i = 0, n = cornu_model_input_count(config->model), at = 0; i < n; i++)
        at += snprintf(x + at, sizeof x - (size_t)at, "x[%d], ", i);
    FILE *to;
    snprintf(path, sizeof path, "%s/%s_shim.c", folder, name);
    assert_non_null(to = fopen(path, "w"));
    for (size_t i = 0; i <= strlen(name); i++)
        capitals[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
    fprintf(to, "#include \"%s.h\"\n", name);
    fprintf(to, "static union { double d; unsigned char of[%s_SCRATCH_BYTES]; } scratch;\n",
            capitals);
    if (!train || config->weights) write_weights(to, name, config->weights);
    if (!train) {
        fprintf(to, "void shim_predict(const void *const *x, void *y)\n"
                "{ %s_predict(weights(), &scratch, %sy); }\n", name, x);
    } else {
        fprintf(to, "static union { double d; unsigned char of[%s_STEP_SCRATCH_BYTES]; } step;\n"
                "static %s_state state;\n"
                "void shim_init(void) { %s_init(&state); %s }\n"
                "void shim_step(const void *x, const void *y) { %s_step(&state, &step, x, y); }\n"
                "void shim_predict(const void *const *x, void *y)\n"
                "{ %s_predict(&state.weights, &scratch, %sy); }\n"
                "void shim_save(unsigned char *bytes) { %s_save(&state, bytes); }\n"
                "void shim_load(const unsigned char *bytes) { %s_load(&state, bytes); }\n"
                "size_t shim_bytes(void) { return %s_WEIGHTS_BYTES; }\n",
                capitals, name, name, config->weights ? "state.weights = *weights();" : "", name,
                name, x, name, name, capitals);
    }
    assert_int_equal(fclose(to), 0);
}

static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    if (!found) fail_msg("%s", dlerror());
}

Compiled compiled_open(const char *name, CornuCompileToCConfig config)
{
    Compiled compiled = { 0 };
    char     path[FILES_PATH + 80], command[2048];
    snprintf(path, sizeof path, "%s/%s.c", folder, name);
    config.path = path;
    expect_ok(cornu_compile_to_c_from(&config));
    write_shim(name, &config);
    snprintf(command, sizeof command, "cd '%s' && cc -std=c99 -O1 -Wall -Wextra -Wconversion "
             "-Werror -fsanitize=undefined -fno-sanitize-recover=all -shared -fPIC %s.c %s_shim.c "
             "-o %s.so -lm", folder, name, name, name);
    run(command);
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    compiled.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!compiled.library) fail_msg("%s", dlerror());
    find(compiled.library, "shim_predict", &compiled.predict);
    if (!config.train) return compiled;
    find(compiled.library, "shim_init", &compiled.init);
    find(compiled.library, "shim_step", &compiled.step);
    find(compiled.library, "shim_save", &compiled.save);
    find(compiled.library, "shim_load", &compiled.load);
    find(compiled.library, "shim_bytes", &compiled.bytes);
    return compiled;
}

void compiled_close(Compiled *compiled) { dlclose(compiled->library); }
