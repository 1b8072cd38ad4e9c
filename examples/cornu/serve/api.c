/* Source: tensorflow/serving, model_servers/http_rest_api_handler.cc, for the order of checks;
 * servables/tensorflow/classifier.cc and regressor.cc for theirs. */
#include "api.h"

#include <string.h>

#include "json/answer.h"
#include "../clock.h"
#include "json/json.h"

/* The API's name in figures. */
static const char *const apis[] = { "GetModelStatus", "GetModelMetadata", "Predict", "Classify",
                                    "Regress" };

/* Counts the request, and times it if it succeeded. Names of models that do not exist are not
 * labels: any client could make up more of them. */
static void count(const Api *api, const ApiRequest *request, bool known)
{
    MetricsLabel name;
    const char  *model = metrics_label(&name, known ? request->route.name : "");
    metrics_add(api->metrics, METRIC_REQUESTS, 1, "model_name=\"%s\",status=\"%s\"", model,
                code_name(request->reply.code));
    if (request->reply.code == CODE_OK)
        metrics_add(api->metrics, METRIC_REQUEST_LATENCY,
                    1e6 * (clock_seconds() - request->begun_s),
                    "model_name=\"%s\",API=\"%s\",entrypoint=\"REST\"", model,
                    apis[request->route.kind]);
}

void api_refuse(const Api *api, ApiRequest *request, const Problem *problem)
{
    reply_problem(&request->reply, problem);
    count(api, request, request->job.served);
}

void api_free(ApiRequest *request)
{
    job_free(&request->job);
    served_release(request->job.served);
    text_free(&request->reply.body);
}

/* ---- Signatures ---- */

static bool check_outputs(RouteKind kind, const Served *served, Problem *problem)
{
    const CornuShape shape = served->outputs[0].type.shape;
    char             shown[200];
    if (kind == ROUTE_PREDICT) return true;
    if (served->output_count > 1)
        return problem_set(problem, CODE_INVALID_ARGUMENT, kind == ROUTE_CLASSIFY
                           ? "Expected one or two output Tensors, found %d"
                           : "Expected one output Tensor.", served->output_count);
    if (kind == ROUTE_CLASSIFY ? served_classifies(served) : served_regresses(served)) return true;
    return problem_set(problem, CODE_INVALID_ARGUMENT, kind == ROUTE_CLASSIFY
                       ? "Expected Tensor shape: [batch_size num_classes] but got %s"
                       : "Expected output Tensor shape to be either [batch_size] or "
                         "[batch_size, 1] but got %s",
                       rows_show_shape(shown, shape.extent, shape.rank));
}

/* A model has one signature, serving_default, which also bears the name of each method. */
static bool check_signature(RouteKind kind, const Served *served, Json request, Problem *problem)
{
    static const char *const key[] = { "signature_name" };
    Json      value;
    JsonShown shown;
    JsonShown name = { "" };
    if (!json_find(request, key, 1, &value, problem)) return false;
    if (value && json_kind(value) != JSON_STRING)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s not formatted "
                           "correctly. 'signature_name' key must be a string value.",
                           json_show(&shown, request));
    if (value && json_room(value) < sizeof name.text) name.text[json_read(value, name.text)] = '\0';
    else if (value) json_show_name(&name, value);
    const char *prefix = "tensorflow/serving/";
    if (*name.text && strcmp(name.text, "serving_default") != 0 &&
        (strncmp(name.text, prefix, strlen(prefix)) != 0 ||
         strcmp(name.text + strlen(prefix), route_method(kind)) != 0))
        return problem_set(problem, CODE_INVALID_ARGUMENT, kind == ROUTE_PREDICT
                           ? "Serving signature name: \"%s\" not found in signature def"
                           : "No signature was found with the name: %s", name.text);
    return check_outputs(kind, served, problem);
}

/* ---- Requests ---- */

static bool begin_rows(const Api *api, ApiRequest *request, const char *body, size_t size,
                       Problem *problem)
{
    const RouteKind kind = request->route.kind;
    MetricsLabel    name;
    Job            *job = &request->job;
    const Json      json = json_parse(body, size, problem);
    if (!json || !check_signature(kind, job->served, json, problem)) return false;
    if (kind == ROUTE_PREDICT ? !rows_of_predict(&job->rows, job->served, json, problem)
                              : !rows_of_examples(&job->rows, job->served, json, problem))
        return false;
    job->api = apis[kind];
    if (kind != ROUTE_PREDICT) {
        metrics_label(&name, request->route.name);
        metrics_add(api->metrics, METRIC_EXAMPLES, (double)job->rows.count, "model=\"%s\"",
                    name.text);
        metrics_add(api->metrics, METRIC_EXAMPLES_TOTAL, (double)job->rows.count, "model=\"%s\"",
                    name.text);
    }
    return true;
}

static bool begin(const Api *api, ApiRequest *request, const char *http_method, const char *path,
                  const char *body, size_t size, Problem *problem)
{
    Route *route = &request->route;
    Text  *to = &request->reply.body;
    if (!route_parse(route, http_method, path, problem)) return false;
    if (route->kind == ROUTE_STATUS)
        return library_status(api->library, route->name, &route->choice, to, problem);
    request->job.served = library_find(api->library, route->name, &route->choice, problem);
    if (!request->job.served) return false;
    if (route->kind != ROUTE_METADATA) return begin_rows(api, request, body, size, problem);
    answer_metadata(to, request->job.served);
    return true;
}

bool api_begin(const Api *api, ApiRequest *request, const char *http_method, const char *path,
               const char *body, size_t size)
{
    Problem problem = { .code = CODE_OK };
    if (!strcmp(path, "/monitoring/prometheus/metrics")) {
        request->reply.type = "text/plain";
        metrics_print(api->metrics, &request->reply.body);
        return false;
    }
    if (!begin(api, request, http_method, path, body, size, &problem)) {
        api_refuse(api, request, &problem);
        return false;
    }
    if (request->job.rows.count) return true;
    count(api, request, true);
    return false;
}

void api_finish(const Api *api, ApiRequest *request)
{
    const Job *job = &request->job;
    Text      *to = &request->reply.body;
    Problem    problem = job->problem;
    if (!problem.code) {
        switch (request->route.kind) {
        case ROUTE_CLASSIFY: answer_classify(to, job->served, job->y); break;
        case ROUTE_REGRESS:  answer_regress(to, job->y); break;
        default:             answer_predict(to, job->served, &job->rows, job->y); break;
        }
        if (to->failed)
            problem_set(&problem, CODE_RESOURCE_EXHAUSTED, "no memory for the answer");
    }
    if (problem.code) {
        text_free(to);
        api_refuse(api, request, &problem);
    } else {
        count(api, request, true);
    }
}
