# The packages that are needed, as HEADER:PACKAGE, FILE:PACKAGE or TOOL:PACKAGE with Debian's names.
# make deps installs the missing ones by apt-get, without ever waiting for a password; without
# apt-get it lists them. curl fetches the data sets; wget will do. make deps-pjrt also downloads XLA
# for CPUs, two plugins of 63 MB, with which the device pjrt is tested; python3 will do for unzip.
# make deps-mpi installs Open MPI and MPICH, for which make then builds plugins; make deps-serve what
# cornu serve and its load test need; make deps-browser a browser, in which pages are tested.

needs      := $(firstword $(CC)):$(if $(findstring clang,$(CC)),clang,gcc) ld:binutils \
              stdio.h:libc6-dev zlib.h:zlib1g-dev jansson.h:libjansson-dev \
              blis-serial/blis.h:libblis-serial-dev stb/stb_image.h:libstb-dev \
              curl:curl /etc/ssl/certs/ca-certificates.crt:ca-certificates
pjrt_needs := curl:curl /etc/ssl/certs/ca-certificates.crt:ca-certificates unzip:unzip
test_needs := cmocka.h:libcmocka-dev hdf5/serial/hdf5.h:libhdf5-dev \
              microhttpd.h:libmicrohttpd-dev \
              /usr/lib/python3/dist-packages/numpy:python3-numpy \
              /usr/lib/python3*/ensurepip:python3-venv
serve_needs := microhttpd.h:libmicrohttpd-dev wrk:wrk

mpi_needs  := mpicc.openmpi:openmpi-bin /usr/lib/$(processor)-linux-gnu/openmpi/lib/libmpi.so:libopenmpi-dev \
              mpicc.mpich:mpich mpich/mpi.h:libmpich-dev

embedded_needs := arm-none-eabi-gcc:gcc-arm-none-eabi qemu-system-arm:qemu-system-arm \
                  /usr/lib/arm-none-eabi/newlib/libc.a:libnewlib-arm-none-eabi

arm64_needs    := aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu qemu-aarch64:qemu-user
arm64_packages := zlib1g-dev libjansson-dev libblis-serial-dev libstb-dev libcmocka-dev libhdf5-dev

deps:      ; @$(call find_needs,$(needs))
deps-test: ; @$(call find_needs,$(needs) $(test_needs))
deps-mpi:  ; @$(call find_needs,$(mpi_needs))
deps-pjrt:
	@$(call find_needs,$(pjrt_needs))
	@bash device/pjrt/fetch.sh

deps-serve: ; @$(call find_needs,$(needs) $(serve_needs))

deps-browser: ; @$(call find_needs,chromium:chromium)

deps-fuzz: ; @$(call find_needs,$(needs) clang:clang \
                 $(if $(fuzz_runtime),,libFuzzer:libclang-rt-dev))

deps-embedded: ; @$(call find_needs,$(embedded_needs))

# The libraries of arm64 are unpacked below $(BUILD); the packages installed on this machine stay as
# they are.
deps-arm64:
	@$(call find_needs,$(arm64_needs))
	@bash tests/arm64/sysroot.sh $(BUILD)/arm64 $(arm64_packages)

# missing: the packages of $(1) that are not installed.
define find_missing
missing=; \
for need in $(1); do \
    case $${need%:*} in \
    *.h) for d in /usr/include /usr/local/include /usr/include/*-linux-gnu; do \
             [ -e $$d/$${need%:*} ] && continue 2; done;; \
    /*) [ -e $${need%:*} ] && continue;; \
    curl) command -v curl wget >/dev/null && continue;; \
    unzip) command -v unzip python3 >/dev/null && continue;; \
    *) command -v $${need%:*} >/dev/null && continue;; \
    esac; \
    missing="$$missing $${need#*:}"; \
done
endef

define find_needs
$(find_missing); \
[ -z "$$missing" ] && exit 0; \
if ! command -v apt-get >/dev/null; then \
    echo "Cornu needs these Debian packages or their like; please install:$$missing"; exit 1; fi; \
if [ $$(id -u) = 0 ]; then as=; elif [ -t 0 ]; then as=sudo; else as="sudo -n"; fi; \
echo "installing$$missing"; \
$$as apt-get update -q && \
$$as env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing || \
    { echo "could not install; as root: apt-get install$$missing"; exit 1; }
endef

# Before anything is compiled: one line, unless the compiler finds all that it needs, wherever it is.
define check_needs
printf '\043include <%s>\n' $(filter %.h,$(subst :, ,$(needs))) | \
    $(CC) $(CFLAGS) -E -x c - >/dev/null 2>&1 && [ -e "$(BLIS)" ] && exit 0; \
$(call find_missing,$(needs)); \
[ -n "$$missing" ] || [ -e "$(BLIS)" ] || missing=" blis-serial/libblis.a, which BLIS=FILE names"; \
[ -z "$$missing" ] || { echo "Cornu needs$$missing: run \`make deps\`, which installs them" >&2; exit 1; }
endef

.PHONY: deps deps-test deps-mpi deps-pjrt deps-serve deps-fuzz deps-arm64 deps-embedded deps-browser
