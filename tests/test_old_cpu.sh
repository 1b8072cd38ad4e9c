# An x86-64 processor without AVX trains a network: nothing outside the isa/ folders, BLIS
# included, may use an instruction that not every such processor has.
case $BUILD in
*sanitize*) echo "0 passed, 0 failed, 1 skipped"; exit ;;
esac
if ! command -v qemu-x86_64 >/dev/null || [ "$(uname -m)" != x86_64 ]; then
    echo "no qemu-x86_64"
    echo "0 passed, 0 failed, 1 skipped"
    exit
fi
if env -u CORNU_ISA qemu-x86_64 -cpu Nehalem "$BUILD/mnist_cnn" --data synthetic --limit 32 \
        --epochs 1 --batch-size 32; then
    echo "1 passed, 0 failed, 0 skipped"
else
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
