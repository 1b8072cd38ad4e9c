# MPI is optional: a plugin for each library of MPI that has an mpicc, which Cornu loads when a
# launcher of that library has started it. `make MPI=` builds none, make deps-mpi installs Open MPI
# and MPICH.

MPI       ?= openmpi mpich
mpi_files := $(wildcard device/processes/mpi/*.c)

# The mpicc of a library: by its full name, or mpicc if its header says that it is the one.
mpi_mark_openmpi = OPEN_MPI
mpi_mark_mpich   = MPICH_VERSION
mpicc_of = $(if $(CROSS),,$(shell command -v mpicc.$(1) || \
               { echo '\#include <mpi.h>' | mpicc -E -dM - 2>/dev/null | \
                 grep -q $(mpi_mark_$(1)) && echo mpicc; }))
mpicc_openmpi := $(if $(findstring openmpi,$(MPI)),$(call mpicc_of,openmpi))
mpicc_mpich   := $(if $(findstring mpich,$(MPI)),$(call mpicc_of,mpich))
mpi_plugins    = $(foreach m,openmpi mpich,$(if $(mpicc_$(m)),$(BUILD)/libcornu_mpi_$(m).so))

# The compiler is the one that everything else is built by.
$(BUILD)/libcornu_mpi_%.so: $(mpi_files) device/processes/mpi/plugin_internal.h $(BUILD)/flags \
                           | build/include/cornu/cornu.h
	$(call say,mpi,$@)OMPI_CC='$(CC)' MPICH_CC='$(CC)' $(mpicc_$*) -std=c11 -Wall -Wextra -Werror \
	    -fPIC -fvisibility=default $(CFLAGS) -shared $(mpi_files) -o $@
