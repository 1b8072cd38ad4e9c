# tests/embedded/check.sh BUILD: models as C source on a Cortex-M4 in qemu, with 256 KB of flash and
# 64 KB of RAM: one of 8 bits predicts, and one of floats trains its last layer. Prints what it takes,
# and fails unless it computes what this machine does. By make check-embedded, after make deps-embedded.
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

"$build/cornu" train mnist_convnet --data synthetic --limit 2048 --epochs 2 --verbose 0 \
    --save digits.safetensors >log
"$build/cornu" quantize digits.safetensors --data synthetic --limit 256 --save digits.tflite >log
"$build/cornu" compile digits.tflite --int8 -o small.c
"$build/cornu" compile "$here/tuned.json" -o tuned.c --train --batch-size 1 --optimizer adam \
    --learning-rate 0.05 --loss sparse_categorical_crossentropy

warnings="-std=c99 -O2 -Wall -Wextra -Wconversion -Werror -I."
cortex="-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -ffunction-sections -fdata-sections"
${CC:-cc} $warnings small.c tuned.c "$here/check.c" -lm -o host
for file in small.c tuned.c "$here/check.c" "$here/start.c"; do
    arm-none-eabi-gcc $warnings $cortex -c "$file"
done
arm-none-eabi-gcc $cortex -nostartfiles -Wl,--gc-sections --specs=rdimon.specs -T "$here/mps2.ld" \
    small.o tuned.o check.o start.o -lm -o board
arm-none-eabi-size small.o tuned.o board

./host >wanted
timeout 120 qemu-system-arm -M mps2-an386 -kernel board -nographic -monitor none \
    -semihosting-config enable=on,target=native >got </dev/null
cat got
cmp wanted got
echo "the controller computes what this machine does"
