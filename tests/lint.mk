# make lint reads the code: lines, cppcheck, gcc's analyser, clang-tidy, and which files need each
# other (tests/circles.sh, also make check-circles). make format writes it as .clang-format says.

tidy_files = $(sort $(shell find $(folders) examples tests -name '*.[ch]' 2>/dev/null))

# Without what cppcheck gets wrong as it sees one file at a time: buffers that a function of
# another file fills, NULLs that one refuses. .clang-tidy says what clang-tidy goes without.
cppcheck_off := missingIncludeSystem unknownEvaluationOrder uninitvar legacyUninitvar ctuuninitvar \
                uninitdata ctunullpointer

# gcc's analyser goes without the same two kinds, and without tests, which end where a pointer is
# NULL. It and clang-tidy read what is compiled once.
analyzer_off := use-of-uninitialized-value null-argument
lint_cflags   = -std=c11 -D_POSIX_C_SOURCE=200809L -Ibuild/include $(hdf5_cflags)
lint_files    = $(filter-out $(isa_files) $(mpi_files),$(filter %.c,$(tidy_files)))
lint_each     = printf '%s\n' $(1) | xargs -P $(shell nproc) -I{}

check-circles: $(objects)
	@bash tests/circles.sh $(BUILD) $(filter $(BUILD)/obj/%,$^)

format:
	clang-format -i $(tidy_files)

lint: build/include/cornu/cornu.h $(objects)
	@bad=0; \
	bash tests/circles.sh $(BUILD) $(filter $(BUILD)/obj/%,$(objects)) || bad=1; \
	LC_ALL=C.UTF-8 grep -nE '^.{101}|[[:blank:]]$$|	' $(tidy_files) && \
	    echo "lint: over 100 columns, blanks at the end, or a tab" && bad=1; \
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
	    -Ibuild/include '-Djson_object_foreach(object,key,value)=while((value=(void*)(key="")))' \
	    $(cppcheck_off:%=--suppress=%) --error-exitcode=1 $(filter %.c,$(tidy_files)) || bad=1; \
	$(call lint_each,$(filter-out tests/%,$(lint_files))) gcc -fanalyzer -Werror \
	    $(analyzer_off:%=-Wno-analyzer-%) $(lint_cflags) -c {} -o /dev/null || bad=1; \
	$(call lint_each,$(lint_files)) clang-tidy --quiet {} -- $(lint_cflags) || bad=1; \
	exit $$bad

.PHONY: lint check-circles format
