/*
 * cornu COMMAND: one program for anything one brings, models as files or by name, data as files.
 *
 *     cornu summary my.onnx
 *     cornu train my.keras --x x.npy --y y.npy --loss mse --save trained.keras
 *     cornu help train
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cornu/cornu.h>

#include "commands.h"
#include "common/session.h"

typedef struct {
    const char *name, *purpose;
    int (*run)(int argc, char **argv);
} Command;

static const Command commands[] = {
#define COMMAND(name, purpose) { #name, purpose, command_##name },
#include "commands.def"
#undef COMMAND
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int list(FILE *to)
{
    fputs("usage: cornu COMMAND [ARGUMENT | FLAG]...\n"
          "Trains, runs, converts and shows models.\n\n"
          "A MODEL is a file (.keras, .h5, .onnx, .tflite, .safetensors, or .json of an\n"
          "architecture) or a network of models/ by its name.\n\n"
          "Commands:\n\n", to);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-12s  %s\n", commands[i].name, commands[i].purpose);
    fputs("\ncornu help COMMAND lists its flags.\n", to);
    return 0;
}

static int unknown(const char *name)
{
    const char *names[COMMANDS];
    for (int i = 0; i < COMMANDS; i++) names[i] = commands[i].name;
    const char *nearest = cornu_nearest(name, names, COMMANDS);
    fprintf(stderr, "cornu: no command \"%s\"%s%s%s; cornu help lists them\n", name,
            nearest ? ", did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
    return 2;
}

static int run(const char *name, int argc, char **argv)
{
    char whole[64];
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name) != 0) continue;
        snprintf(whole, sizeof whole, "cornu %s", name);
        argv[0] = whole;
        return commands[i].run(argc, argv);
    }
    return unknown(name);
}

/* For a shell: the words that a command line may go on with, which are commands, or `models`. */
static int complete(const char *what)
{
    int                        count = 0;
    const CornuReferenceModel *models = cornu_reference_models(&count);
    if (what && !strcmp(what, "models")) {
        for (int i = 0; i < count; i++) puts(models[i].name);
        return 0;
    }
    for (int i = 0; i < COMMANDS; i++) puts(commands[i].name);
    puts("help");
    return 0;
}

static int command(int argc, char **argv)
{
    const char *name = argv[1];
    if (!strcmp(name, "--complete")) return complete(argv[2]);
    if (!strcmp(name, "--version")) return printf("Cornu %s\n", CORNU_VERSION), 0;
    if (strcmp(name, "help") != 0 && strcmp(name, "--help") != 0)
        return run(name, argc - 1, argv + 1);
    if (argc == 2) return list(stdout);
    char *help[] = { argv[0], "--help", NULL };
    return run(argv[2], 2, help);
}

int main(int argc, char **argv)
{
    if (argc < 2) return list(stderr), 2;
    const int status = command(argc, argv);
    return status ? status : session_report("cornu", CORNU_OK);   /* what was printed arrived */
}
