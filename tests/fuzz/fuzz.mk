# make fuzz SECONDS=60 T=idx runs libFuzzer for so long on each target in tests/fuzz whose path
# contains "idx", and prints a line NAME EXECUTIONS EXECUTIONS_PER_SECOND FINDINGS.
#
# Where clang has libFuzzer it builds the targets in $(BUILD)/fuzz, with the code that reads files
# instrumented and the rest from LIBRARY. Elsewhere, and with other sanitizers, they are programs
# that run once over each input in seeds/ (replay.c).

fuzz_sources  := $(filter-out tests/fuzz/replay.c,$(sort $(wildcard tests/fuzz/*.c)))
fuzz_matching  = $(foreach f,$(fuzz_sources),$(if $(findstring $(T),$(f)),$(f)))
fuzz_chosen    = $(if $(T),$(fuzz_matching),$(fuzz_sources))
fuzz_programs  = $(fuzz_sources:tests/%.c=$(BUILD)/tests/%)

FUZZ_CC ?= clang
LIBRARY  = $(BUILD)/libcornu.a
fuzz_runtime := $(if $(SANITIZE)$(CROSS),,$(wildcard \
                  $(shell $(FUZZ_CC) -print-runtime-dir 2>/dev/null)/libclang_rt.fuzzer*.a))
fuzzing := $(findstring fuzzer,$(SANITIZE))
fuzzed   = $(filter $(BUILD)/obj/nn/% $(BUILD)/obj/datasets/%,$(objects))

$(BUILD)/libfuzzed.a: $(fuzzed) $(BUILD)/files
	@rm -f $@
	$(call say,ar,$@)$(AR) qcs $@ $(filter %.o,$^)

$(fuzz_programs): $(BUILD)/%: $(BUILD)/obj/%.o $(BUILD)/obj/examples/cornu/common/options.o \
                  $(if $(fuzzing),$(BUILD)/libfuzzed.a,$(BUILD)/obj/tests/fuzz/replay.o) $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,ld,$@)$(subst fuzzer-no-link,fuzzer,$(link)) $(libraries)

# The server's requests, without its connections.
$(BUILD)/tests/fuzz/serve: $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out %/serve.c \
    %/http.c %/http/library.c %/listen.c %/connections.c,$(filter examples/cornu/serve/%,$(tool))))

fuzz_build = CC=$(FUZZ_CC) BUILD=$(BUILD)/fuzz SANITIZE=fuzzer-no-link,address,undefined \
             CFLAGS='-O1 -gline-tables-only' LIBRARY=$(BUILD)/libcornu.a

fuzz-programs: $(if $(fuzz_runtime),$(LIBRARY),$(fuzz_programs))
	$(if $(fuzz_runtime),$(again) $(fuzz_build) fuzz-programs)

fuzz: deps-fuzz
	$(again) fuzz-programs
	@bash tests/fuzz/run.sh $(BUILD)/fuzz $(SECONDS) $(fuzz_chosen)

.PHONY: fuzz fuzz-programs
