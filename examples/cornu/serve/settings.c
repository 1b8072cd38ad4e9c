#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t settings_name(const char *text, char end)
{
    const size_t length = strcspn(text, "/:=");
    return text[length] == end ? length : 0;
}

static int refuse(const char *flag, const char *value, const char *expected)
{
    fprintf(stderr, "cornu serve: --%s is \"%s\", expected %s\n\nTry 'cornu serve --help'.\n", flag,
            value, expected);
    return 2;
}

static const char purpose[] =
    "Serves saved models over HTTP, by TensorFlow Serving's REST interface.\n"
    "\n"
    "    GET  /v1/models/NAME[/versions/N|/labels/LABEL][/metadata]\n"
    "    POST /v1/models/NAME[/versions/N|/labels/LABEL]:predict|:classify|:regress\n"
    "    GET  /monitoring/prometheus/metrics\n"
    "\n"
    "A folder of models has a folder for each, with a folder for each version, whose name\n"
    "is a number: DIR/NAME/3/model.keras, or in short DIR/NAME/3.keras. The latest version\n"
    "is served. A new one is loaded before the old one goes; move its file into place when\n"
    "it is complete. Everything that Cornu loads is served: .safetensors, .keras, .h5, .onnx,\n"
    ".tflite.\n"
    "\n"
    "Requests that wait are computed together where this leaves their predictions as they\n"
    "are for each by itself, to the last bit.\n"
    "\n"
    "SIGTERM and SIGINT let the requests end that have arrived, then end the server; SIGHUP\n"
    "looks for new versions at once, and tries again those that did not load. There is no\n"
    "TLS and no password: unless --address says otherwise only this machine is served. Let a\n"
    "proxy face others.";

/* NAME:LABEL=VERSION. */
static bool is_label(const char *text)
{
    const size_t name = settings_name(text, ':');
    const size_t label = name ? settings_name(text + name + 1, '=') : 0;
    const char  *version = label ? text + name + label + 2 : "";
    return *version && strlen(version) < 19 && strspn(version, "0123456789") == strlen(version);
}

int settings_parse(Settings *s, int argc, char **argv)
{
    *s = (Settings){
        .versions = 1, .poll_s = 1, .address = "127.0.0.1", .port = 8501, .batch_size = 32,
        .queue = 1000, .max_body_mib = 16, .connections = 1000, .timeout_s = 30,
    };
    const Option extra[] = {
        { "models", OPTION_TEXT, &s->models, "DIR",
          "serves DIR/NAME/VERSION/FILE and DIR/NAME/VERSION.SUFFIX as model NAME", 0, 0, NULL },
        { "model", OPTION_TEXTS, &s->model, "NAME=PATH",
          "serves PATH, a model's file or its folder of versions, as NAME", 0, 0, NULL },
        { "label", OPTION_TEXTS, &s->label, "NAME:LABEL=N",
          "keeps version N of a model, under /labels/LABEL, too", 0, 0, NULL },
        { "versions", OPTION_WHOLE, &s->versions, "N",
          "serves the N latest versions of each model", 1, 1000, NULL },
        { "poll", OPTION_NUMBER, &s->poll_s, "S", "looks for new versions every S seconds", 0.01,
          1e6, NULL },
        { "address", OPTION_TEXT, &s->address, "HOST",
          "address to listen on", 0, 0, NULL },
        { "port", OPTION_WHOLE, &s->port, "N", "port to listen on; 0 takes a free one", 0, 65535,
          NULL },
        { "batch-size", OPTION_WHOLE, &s->batch_size, "N",
          "rows up to which waiting requests are computed together", 1, 1e6, NULL },
        { "batch-timeout", OPTION_NUMBER, &s->batch_timeout_ms, "MS",
          "milliseconds to wait for a full batch; default 0: what waits when a thread is free",
          0, 60000, NULL },
        { "queue", OPTION_WHOLE, &s->queue, "N",
          "requests that may wait; further ones get status 503", 1, 1e6, NULL },
        { "max-body", OPTION_NUMBER, &s->max_body_mib, "MIB",
          "MiB of a request's body; larger ones get status 413", 0.001, 4096, NULL },
        { "connections", OPTION_WHOLE, &s->connections, "N", "connections at once", 1, 100000,
          NULL },
        { "timeout", OPTION_NUMBER, &s->timeout_s, "S",
          "seconds for a request to arrive, and for it to wait", 0.1, 86400, NULL },
        OPTION_END,
    };
    const Program program = {
        .name = "cornu serve", .groups = OPTIONS_DEVICE | OPTIONS_THREADS, .extra = extra,
        .purpose = purpose,
    };
    const int status = options_parse(&s->options, &program, argc, argv);
    if (status >= 0) return status;
    for (int i = 0; i < s->model.count; i++) {
        const size_t name = settings_name(s->model.text[i], '=');
        if (!name || !s->model.text[i][name + 1])
            return refuse("model", s->model.text[i], "NAME=PATH, the name without / and :");
    }
    for (int i = 0; i < s->label.count; i++)
        if (!is_label(s->label.text[i]))
            return refuse("label", s->label.text[i], "NAME:LABEL=N");
    if (s->models || s->model.count) return -1;
    fputs("cornu serve: expected --models DIR or --model NAME=PATH\n\n"
          "Try 'cornu serve --help'.\n", stderr);
    return 2;
}

/* ---- Labels ---- */

int64_t settings_label(const OptionTexts *labels, const char *name, const char *label)
{
    for (int i = 0; i < labels->count; i++) {
        const char  *text = labels->text[i];
        const size_t a = settings_name(text, ':'), b = settings_name(text + a + 1, '=');
        if (strlen(name) == a && !memcmp(name, text, a) && strlen(label) == b &&
            !memcmp(label, text + a + 1, b))
            return strtoll(text + a + b + 2, NULL, 10);
    }
    return -1;
}

bool settings_has_label(const OptionTexts *labels, const char *name, int64_t number)
{
    for (int i = 0; i < labels->count; i++) {
        const char  *text = labels->text[i];
        const size_t a = settings_name(text, ':');
        if (strlen(name) == a && !memcmp(name, text, a) &&
            strtoll(strchr(text, '=') + 1, NULL, 10) == number)
            return true;
    }
    return false;
}
