# make test, five minutes at most on two cores with all that it builds, and other ways to test:
#
#   make check                        what make test leaves out, and what computes once more under
#                                     the instruction sets of ISAS, portable and avx2
#   make test T=idx                   the test programs whose path contains "idx", in full, each with
#                                     a line of its own; make check T=idx
#   make test RESUME=1                resumes after an interruption; JOBS=1 runs one at a time
#   make test ISAS="portable avx2"    those that compute also under these instruction sets
#   make check-isa                    all tests under portable, AVX2 and the best instruction set
#   make check-arm64 T=idx            all tests that compute, built for arm64, in an emulator: hours
#   make check-embedded               models as C source on a Cortex-M4 in qemu: a minute
#   make check-tflite PYTHON=python3         LiteRT's interpreter (ai-edge-litert) on the test sets
#   make check-int8 PYTHON=python3    its reference kernels and ours on the test sets, bit for bit:
#                                     MODELS="a.tflite b.tflite" IMAGES=...-idx3-ubyte.gz ROWS=1000
#   make check-onnx-nodes PYTHON=python3     ONNX' own tests of operators, of its Python package
#   make check-programs SECONDS=60 SEED=N    random programs on every device against the reference;
#                                     COUNT=1 repeats one
#   make check-models SECONDS=60 SEED=N      random models likewise
#   make check-keras-random N=300 SEED=N    random models of Keras itself, beside Keras: PYTHON is
#                                     an interpreter that has it, ONLY=supported leaves out what
#                                     Cornu lacks
#   make check-processes SECONDS=60 SEED=N   random programs in 2, 3, 5 processes against one
#   make check-processes-bits         trainings in 1 to 8 processes over each transport: minutes
#   make check-training               the networks in full against the published accuracies: hours
#   make check-tpu                    compiles ops and networks with libtpu, for TPUs that are not
#                                     there: T="v3:2x2", NETWORKS="mnist_cnn"; minutes to an hour
#   make check-gpu                    likewise with the CUDA plugin, for GPUs: T="h100 l4"
#   make check-kills KILLS=200 SEED=N    trainings of several processes, of which ranks are
#                                     killed and stopped, and connections cut
#   make check-keras-cases T=pooling  Keras' own tests of its layers; PYTHON=... has Keras, JAX, pytest
#   make check-keras-applications ONLY='VGG16 Xception'   networks of keras.applications, beside Keras
#   make check-keras-examples ONLY='generative_vae'   programs like Keras' examples, beside Keras
#   make check-keras-program FILE=my.py   an unchanged program of Keras, beside Keras
#   make bench-keras-applications     their times and memory, beside Keras on TensorFlow and JAX
#   make bench-keras-programs         trainings as users write them, at their sizes, beside the same
#   make bench-keras-examples         the programs of check-keras-examples: tracing, compiling, steps
#   make check-serve SECONDS=60       cornu serve with 64 connections, by wrk
#   make check-faults                 failures of memory, disks, files and processes
#   make check-mutants T=reduce       puts faults into copies of the code: tests must notice them
#   make bench                        kernels and steps against this machine's limits, when idle
#   make bench-peers                  steps and predictions beside PyTorch, JAX, LiteRT, ...
#
# tests/**/test_NAME.c is a test program; the other files are shared by all of them, except that
# tests/bench/ is one program, tests/ahead/, tests/keras/, tests/lite/ and tests/onnx/ others, files
# in tests/install/ and tests/embedded/ are compiled as a user would, and those in tests/fuzz/ are fuzz targets.
#
# A line of a test says what make test does with it (tests/run has the other words):
#
#     tests/run: in check               it takes more than five seconds of a processor, or builds the
#                                       library anew, or needs what a newcomer lacks: make check alone
#     tests/run: quick                  with CORNU_QUICK set it tries less, in a second or two
#                                       (tests/quick.h); make check runs it in full
#
# Every folder keeps tests that say neither, or are quick.

test_tree     := $(sort $(shell find tests -name '*.c' ! -path 'tests/install/*' \
                               ! -path 'tests/embedded/*' \
                               ! -path 'tests/fuzz/*' ! -path 'tests/python/*' 2>/dev/null))
bench_files   := $(filter tests/bench/%,$(test_tree))
ahead_files   := $(filter tests/ahead/%,$(test_tree))
keras_files   := $(filter tests/keras/%,$(test_tree))
onnx_files    := $(filter tests/onnx/%,$(test_tree))
lite_files    := $(filter tests/lite/%,$(test_tree))
test_sources  := $(foreach f,$(test_tree),$(if $(filter test_%,$(notdir $(f))),$(f)))
test_helpers  := $(filter-out $(bench_files) $(ahead_files) $(keras_files) $(lite_files) \
                               $(onnx_files) $(test_sources),$(test_tree))
test_programs  = $(test_sources:tests/%.c=$(BUILD)/tests/%)
test_scripts  := $(sort $(shell find tests -name 'test_*.sh' 2>/dev/null))
all_tests      = $(test_programs) $(test_scripts)
chosen         = $(foreach t,$(all_tests),$(if $(findstring $(T),$(t)),$(t)))

# The tests with such a line. PART=test leaves out those in check.
saying        = $(patsubst tests/%.c,$(BUILD)/tests/%,$(shell grep -lE \
                    '^[^a-z]{1,3}tests/run: (.*, )?$(1)(,|$$)' $(test_sources) $(test_scripts)))
tests_in_check := $(call saying,in check)
PART           =
tests          = $(if $(T),$(chosen),$(filter-out $(if $(PART),$(tests_in_check)),$(all_tests)))
bench          = $(if $(bench_files),$(BUILD)/bench)

# They share one library of all that they test, with its internal names: linking the archive with
# each would copy 20 MB of debug information 250 times.
$(BUILD)/libtests.so: $(test_helpers:%.c=$(BUILD)/obj/%.o) $(objects) $(BUILD)/files
	$(call say,so,$@)$(CC) -shared $(CFLAGS) $(sanitizer) $(LDFLAGS) $(filter %.o,$^) -o $@ \
	    -lcmocka $(libraries)

# But one is started from other folders, where it looks for plugins beside it.
rank_program = $(BUILD)/tests/device/processes/test_processes
$(rank_program): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(test_helpers:%.c=$(BUILD)/obj/%.o) \
                 $(BUILD)/libcornu.a $(BUILD)/files
	@mkdir -p $(@D)
	$(call say,ld,$@)$(link) -lcmocka $(libraries)

$(filter-out $(rank_program),$(test_programs)): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o \
                                                $(BUILD)/libtests.so
	@mkdir -p $(@D)
	$(call say,ld,$@)$(link) $(BUILD)/libtests.so \
	    -Wl,-rpath,'$$ORIGIN/'$$(realpath --relative-to=$(@D) $(BUILD)) -lcmocka $(libraries)

# And these start cornu.
$(addprefix $(BUILD)/tests/examples/,test_own_data test_predict test_serve): | $(BUILD)/cornu

$(BUILD)/bench: $(bench_files:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/examples/cornu/common/options.o \
                $(BUILD)/libcornu.a $(BUILD)/files
	$(call say,ld,$@)$(link) $(libraries)

$(BUILD)/check_ahead: $(ahead_files:%.c=$(BUILD)/obj/%.o) \
                      $(patsubst %.c,$(BUILD)/obj/%.o,tests/op_cases.c $(filter \
                          tests/op_cases/%,$(test_helpers))) $(BUILD)/libcornu.a $(BUILD)/files
	$(call say,ld,$@)$(link) $(libraries)

$(BUILD)/keras_model: $(keras_files:%.c=$(BUILD)/obj/%.o) $(BUILD)/libcornu.a $(BUILD)/files
	$(call say,ld,$@)$(link) $(libraries)

$(BUILD)/onnx_nodes: $(onnx_files:%.c=$(BUILD)/obj/%.o) $(BUILD)/libcornu.a $(BUILD)/files
	$(call say,ld,$@)$(link) $(libraries)

$(BUILD)/lite_networks: $(lite_files:%.c=$(BUILD)/obj/%.o) $(BUILD)/libcornu.a $(BUILD)/files
	$(call say,ld,$@)$(link) $(libraries)

# tests/run reports instruction sets that the processor lacks as skipped.
ISAS      =
computing = $(filter $(foreach d,device tensor nn models,$(BUILD)/tests/$(d)/%),$(tests))
run_tests = @JOBS=$(JOBS) RESUME=$(RESUME) FOLDERS=$(if $(T),,1) CORNU_QUICK=$(PART:test=1) tests/run $(BUILD)

# Where there are hundreds of commands, each hundredth is shown.
quiet     = $(if $(T),,EVERY=100)

test: PART = $(if $(T),,test)
test: deps-test
	$(again) test-programs PART=$(PART) $(quiet)
	$(run_tests) $(tests) $(foreach i,$(ISAS),CORNU_ISA=$(i) $(computing))

check: ISAS    = portable avx2
check: once    = $(call saying,all instruction sets)
check: in_full = $(filter $(tests_in_check) $(call saying,quick),$(tests))
check: deps-test
	@echo 'make check: what make test leaves out, about a quarter of an hour on two idle cores'
	$(again) test-programs $(quiet)
	$(run_tests) $(in_full) $(foreach i,$(ISAS),CORNU_ISA=$(i) $(filter-out $(once),$(computing)))

check-isa: deps-test
	$(again) built test-programs $(quiet)
	$(run_tests) $(foreach i,portable avx2,CORNU_ISA=$(i) $(tests)) CORNU_ISA= $(tests)

# Test scripts may run any program.
test-programs: $(filter-out %.sh,$(tests)) \
               $(if $(filter %.sh,$(tests)),built) $(if $(filter tests/bench/%,$(tests)),$(bench)) \
               $(if $(filter tests/test_install.sh tests/packages/%,$(tests)),$(man_pages)) \
               $(if $(filter tests/fuzz/%,$(tests)),fuzz-programs) \
               $(if $(filter tests/examples/test_from_torch.sh,$(tests)),$(BUILD)/keras_model) \
               $(if $(filter tests/device/processes/%.sh,$(tests)),$(rank_program) \
                   $(BUILD)/tests/device/processes/test_strangers) \
               $(if $(filter tests/nn/prediction/test_inference.sh,$(tests)),inference-built)
	@:

check-training: deps-test
	$(again) built $(BUILD)/tests/examples/test_predict
	@bash tests/training/check.sh $(BUILD)

check-tpu: ahead = v2:2x2 v3:2x2 v5e:2x4 v6e:2x2
check-gpu: ahead = t4 a100 l4 h100
check-tpu check-gpu:
	$(again) $(BUILD)/check_ahead
	@NETWORKS='$(NETWORKS)' bash tests/ahead/check.sh $(BUILD) $(or $(T),$(ahead))

check-arm64: deps-arm64
	$(again) $(arm64) emulated-tests

# Models as C source on a Cortex-M4 in qemu.
check-embedded: deps-embedded $(BUILD)/cornu
	@CC='$(CC)' bash tests/embedded/check.sh $(BUILD)

emulated-tests: test-programs
	@bash tests/arm64/check.sh $(BUILD) $(SYSROOT) $(tests)

arm64 = BUILD=$(BUILD)/arm64 CROSS=aarch64-linux-gnu- SYSROOT=$(BUILD)/arm64/sysroot

# Prints a line NAME TRIED SURVIVED for each kind of failure.
check-faults: deps-test
	$(again) $(BUILD)/tests/faults/test_faults
	@$(BUILD)/tests/faults/test_faults --report

# Prints a line NAME KILLED or NAME SURVIVED for each fault of tests/mutants/faults.list.
check-mutants: deps-test
	+@bash tests/mutants/run.sh $(BUILD) '$(T)'

# Each finding is printed as a program and as a test, with the seed that repeats it.
SECONDS = 60
SEED    = $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
COUNT   =
check-programs: deps-test
	$(again) $(BUILD)/tests/check/test_programs
	@$(BUILD)/tests/check/test_programs --seconds $(SECONDS) --seed $(SEED) $(COUNT:%=--count %)

# Predictions, and those after three training steps.
check-models: deps-test
	$(again) $(BUILD)/tests/check/test_models
	@$(BUILD)/tests/check/test_models --seconds $(SECONDS) --seed $(SEED) $(COUNT:%=--count %)

# Prints how often each disturbance happened, and what differs from an undisturbed training.
KILLS = 200
check-kills:
	$(again) $(BUILD)/cornu
	@bash tests/processes/chaos.sh $(BUILD) $(KILLS) $(SEED)

# Prints rates and latencies; fails unless each answer is what its request gets by itself.
check-serve: deps-serve
	$(again) $(BUILD)/cornu
	@bash tests/examples/check_serve.sh $(BUILD) $(SECONDS)

PYTHON = python3
check-keras-cases:
	$(again) $(BUILD)/keras_model
	@BUILD=$(BUILD) $(PYTHON) tests/keras/layer_cases.py $(T)

check-keras-applications:
	$(again) $(BUILD)/libcornu.so
	@BUILD=$(BUILD) $(PYTHON) tests/keras/applications.py $(ONLY)

check-keras-examples:
	$(again) $(BUILD)/libcornu.so
	@CORNU_LIBRARY=$(abspath $(BUILD)/libcornu.so) PYTHONPATH=nn/python \
	    $(PYTHON) tests/python/examples/compare.py $(ONLY)

check-keras-program:
	$(again) $(BUILD)/libcornu.so
	@CORNU_LIBRARY=$(abspath $(BUILD)/libcornu.so) PYTHONPATH=nn/python \
	    $(PYTHON) tests/python/examples/compare.py $(FILE)

SIDES = cornu tensorflow jax
bench-keras-applications:
	$(again) $(BUILD)/libcornu.so
	@BUILD=$(BUILD) SIDES='$(SIDES)' $(PYTHON) tests/keras/bench_applications.py $(ONLY)

bench-keras-programs bench-keras-examples:
	$(again) $(BUILD)/libcornu.so
	@CORNU_LIBRARY=$(abspath $(BUILD)/libcornu.so) PYTHONPATH=nn/python SIDES='$(SIDES)' \
	    $(PYTHON) tests/keras/bench_$(@:bench-keras-%=%).py $(ONLY)

# ONNX' own tests of single nodes, in the package of the Python interpreter.
check-onnx-nodes:
	$(again) $(BUILD)/onnx_nodes
	@$(PYTHON) tests/onnx/onnx_nodes.py $(BUILD)/onnx_nodes

# On the real digits and garments, after EPOCHS epochs.
EPOCHS = 1
check-tflite:
	$(again) $(BUILD)/lite_networks
	@$(PYTHON) tests/lite/check_tflite.py $(BUILD)/lite_networks $(EPOCHS) $(SAMPLES)

# 8-bit models that cornu quantize wrote; a network of the digits by default.
MODELS = $(BUILD)/int8/digits.tflite
IMAGES = $(CORNU_DATA)/mnist/t10k-images-idx3-ubyte.gz
ROWS   = 10000
check-int8:
	$(again) $(BUILD)/libcornu.so $(BUILD)/cornu
	@mkdir -p $(BUILD)/int8
	$(if $(filter $(BUILD)/int8/%,$(MODELS)),$(BUILD)/cornu train mnist_convnet --epochs 1 \
	    --save $(BUILD)/int8/digits.safetensors && $(BUILD)/cornu quantize \
	    $(BUILD)/int8/digits.safetensors --save $(BUILD)/int8/digits.tflite)
	@$(PYTHON) tests/nn/lite/check_int8.py $(BUILD)/libcornu.so $(IMAGES) $(ROWS) $(MODELS)

# The last lines count what agrees, is refused and is wrong, with the seeds that repeat it.
N    = 300
ONLY =
check-keras-random:
	@$(PYTHON) -c 'import keras, onnxruntime, numpy' || { echo >&2 \
	    "PYTHON=$(PYTHON) lacks keras, jax or tensorflow, onnxruntime or h5py"; exit 1; }
	$(again) $(BUILD)/keras_model
	@$(PYTHON) tests/golden/random_models.py --count $(N) --seed $(SEED) \
	    --program $(BUILD)/keras_model --keep $(BUILD)/random_models $(ONLY:%=--only %)

check-processes: deps-test
	$(again) $(BUILD)/tests/check/test_processes
	@$(BUILD)/tests/check/test_processes --seconds $(SECONDS) --seed $(SEED) $(COUNT:%=--count %)

# tests/examples/test_processes.sh in full.
check-processes-bits: deps-test
	$(again) built
	@BUILD=$(BUILD) ALL=1 bash tests/examples/test_processes.sh

bench: $(bench)
	$(bench) --json $(BUILD)/bench.json

# CASES: NETWORK:BATCH,... in place of all; PEERS: a folder of a Python that has the others.
CASES ?=
PEERS ?=
bench-peers: $(bench) $(BUILD)/libcornu.so
	@PEERS='$(PEERS)' tests/bench/peers/all.sh $(bench) $(BUILD) $(CASES)

.PHONY: test check test-programs emulated-tests check-isa check-arm64 check-training check-faults \
        check-mutants check-programs check-models check-processes check-processes-bits \
        check-kills check-tpu check-gpu check-keras-cases check-keras-random \
        check-embedded check-keras-applications check-keras-examples check-keras-program check-onnx-nodes check-tflite \
        bench bench-peers \
        bench-keras-applications bench-keras-programs bench-keras-examples check-serve check-int8
