/* Cornu: the one header a program includes. */
#ifndef CORNU_H
#define CORNU_H

/* Major, minor, patch. */
#define CORNU_VERSION "0.1.0"

#include "../datasets/augment.h"
#include "../datasets/dataset.h"
#include "../datasets/iterator.h"
#include "../device/device.h"
#include "../tensor/ops.h"
#include "activations.h"
#include "backup.h"
#include "callback.h"
#include "checkpoint.h"
#include "constraints.h"
#include "file.h"
#include "files.h"
#include "functional.h"
#include "generate.h"
#include "history.h"
#include "initializers.h"
#include "layer.h"
#include "layers.h"
#include "loss.h"
#include "metric.h"
#include "model.h"
#include "optimizer.h"
#include "pictures.h"
#include "plot.h"
#include "policy.h"
#include "progbar.h"
#include "record.h"
#include "regularizers.h"
#include "report.h"
#include "safetensors.h"
#include "schedule.h"
#include "strategy.h"
#include "summary.h"
#include "terminal.h"
#include "trace.h"

#endif
