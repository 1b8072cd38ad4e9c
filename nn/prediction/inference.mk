# make inference: $(BUILD)/libcornu-inference.a, which loads .safetensors files and predicts, and
# $(BUILD)/infer-small, examples/infer.c with it; prints their sizes.
#
# The library is one object. What its public functions reach is kept, everything else dropped, so
# that there is no list of its files; tables that name what only training needs leave that out
# (device/inference_internal.h). It contains jansson and what it needs of zlib, with hidden names,
# and depends on the C library alone. Headers are those of libcornu; a program that calls what is
# not in it does not link, and the linker names the function.
#
#   make inference INFERENCE_CFLAGS=-O2     a little faster where no kernel computes; -Os by default
#   make inference LAYERS='conv2d max_pooling2d flatten dropout dense' OPERATIONS='Add Reshape'
#                  with these classes alone, rows of layers.def and of operations.def, and only for
#                  models from files: without functions that make layers

INFERENCE_CFLAGS = -Os
LAYERS           =
OPERATIONS       =

# The files whose public functions it offers, less those that train, save or read other files. What
# they need comes with them.
inference_files = $(filter device/%.c tensor/%.c nn/config/% nn/fields/% nn/layers/% nn/weights/% \
                      nn/model/% nn/prediction/% nn/saving/% nn/formats/safetensors.c nn/training/evaluate.c \
                      datasets/images/image.c datasets/images/image_resize.c datasets/mnist/digit.c, $(sources))
inference_lacks = adapt_from adapted dataset_layer compile_(step_)?from evaluate_from \
                  device_(set_mesh|shard_fully) (fully_sharded|(data|model|pipeline)_parallel)_from \
                  default_layout set_distribution strategy_ keras_to_tpu_model own_objects graph_set_(sequential|whole_batch) error_raise \
                  (train|test)_on_batch (multi_worker|tpu)_ summary_ gradients check_gradients \
                  op_gradient_rows (model|layer)_(save|export|quantize|move|metric|optimizer) \
                  model_reset_metrics model_load_compiled compile_to_json call_from_json \
                  (optimizer|loss|metric)_from_json operation_record placeholder model_place \
                  traced_(add|attribute|layer|read|set|takes|weight) \
                  layer_vocabulary_to_json generate_ generator_ sample_ safetensors_write cache_limits \
                  cpu_limits process classes_to_json op_check_from \
                  file_check file_write
space          := $(subst ,, )
inference_absent = ^cornu_($(subst $(space),|,$(strip $(inference_lacks))))

# Folders of which it needs nothing, which saves compiling them.
inference_without = device/tpu/% device/pjrt/% device/c_source/% device/processes/mpi/% nn/c_source/% \
                    nn/callbacks/% nn/estimator/% nn/explain/% nn/pages/% nn/pictures/% nn/lite/% nn/saving/onnx/% \
                    nn/saving/onnx_read/% datasets/clicks/% datasets/records/% datasets/synthetic/% datasets/tables/% \
                    datasets/tar/% models/%

# Kernels of instruction sets take longest to compile. Those that hold nothing for training alone
# (CORNU__FULL, device/inference_internal.h) are libcornu's.
inference_own_isa    = $(BUILD)/obj/device/host/isa/$(1).%.o
inference_isa        = $(filter-out $(foreach i,$(bf16_isas) $(amx_isas),%.$(i).o),$(isa_objects))
inference_isa_shared = $(filter-out $(foreach f,attention depthwise normalize pool product recurrent,\
                           $(call inference_own_isa,$(f))),$(inference_isa))

inference:
	$(again) inference-built
	@bash nn/prediction/inference_sizes.sh $(BUILD)

inference-built: $(inference_isa_shared) | build/include/cornu/cornu.h
	+@$(MAKE) --no-print-directory BUILD=$(BUILD)/inference INFERENCE=$(BUILD) HDF5= \
	    CFLAGS='$(INFERENCE_CFLAGS)' $(BUILD)/libcornu-inference.a $(BUILD)/infer-small

ifneq ($(INFERENCE),)
all_cflags += -DCORNU_INFERENCE -ffunction-sections -fdata-sections -fvisibility=hidden \
              -fno-asynchronous-unwind-tables

sources     := $(filter-out $(inference_without),$(sources))
isa_objects := $(filter-out $(inference_isa_shared),$(inference_isa)) \
               $(inference_isa_shared:$(BUILD)/%=$(dir $(BUILD))%)

# rows FILE PATTERN NAMES: the row for each name, NAME in the pattern.
rows = $(foreach n,$(3),$(or $(shell sed -nE 's/^$(subst NAME,$(n),$(2))$$/&/p' $(1)), \
           $(error $(1) has no $(n))))
$(call stamp,layers.def,$(call rows,nn/layers/layers.def,LAYER\(NAME\),$(LAYERS)))
operation_row := OPERATION(_MANY|_MOVES)?\([a-z]*$(comma) *NAME$(comma) *[a-z0-9_]*\)
$(call stamp,operations.def,$(call rows,nn/layers/operations/operations.def,$(operation_row),\
                                   $(OPERATIONS)))

layer_tables = $(addprefix $(BUILD)/obj/nn/layers/,table.o operations/operations_table.o \
                                                    operations/signature.o)
$(layer_tables): $(BUILD)/layers.def $(BUILD)/operations.def
ifneq ($(LAYERS),)
inference_files := $(filter-out nn/layers/%,$(inference_files)) $(wildcard nn/layers/*.c)
$(layer_tables): all_cflags += -DCORNU_LAYERS='"$(abspath $(BUILD)/layers.def)"' \
                               -DCORNU_OPERATIONS='"$(abspath $(BUILD)/operations.def)"'
endif

static_library = $(shell $(CC) -print-file-name=$(1))

# objcopy hides all but the public names.
$(INFERENCE)/libcornu-inference.a: $(filter-out %/blis.o,$(objects)) $(BUILD)/files nn/prediction/inference.mk
	@$(CROSS)nm -g --defined-only $(filter $(inference_files:%.c=$(BUILD)/obj/%.o),$^) | \
	    awk '$$2 == "T" && $$3 ~ /^cornu_[a-z]/ || $$3 ~ /^cornu_field_/ { print $$3 }' | grep -vE '$(inference_absent)' | \
	    sort -u > $(BUILD)/offers
	$(call say,ld,$(BUILD)/inference.o)$(CROSS)ld -r -d --gc-sections --unique='.text.*' \
	    $$(sed 's/^/-u /' $(BUILD)/offers) $(filter %.o,$^) \
	    $(call static_library,libjansson.a) $(call static_library,libz.a) -o $(BUILD)/all.o
	@$(CROSS)objcopy --strip-unneeded --keep-global-symbols=$(BUILD)/offers $(BUILD)/all.o \
	    $(BUILD)/cornu-inference.o
	@rm -f $@ $(BUILD)/all.o
	$(call say,ar,$@)$(AR) qcs $@ $(BUILD)/cornu-inference.o

$(INFERENCE)/infer-small: $(BUILD)/obj/examples/infer.o $(INFERENCE)/libcornu-inference.a
	$(call say,ld,$@)$(link) -Wl,--gc-sections -lpthread -lm
endif

.PHONY: inference inference-built
