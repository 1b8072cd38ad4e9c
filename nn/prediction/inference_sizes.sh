# Prints the bytes of the library that `make inference` builds, and of the program with it:
#     bash nn/prediction/inference_sizes.sh BUILD
copy=$(mktemp) || exit 1
trap 'rm -f "$copy"' EXIT
for file in "$1/libcornu-inference.a" "$1/infer-small"; do
    strip -g -o "$copy" "$file" && size -t "$copy" | awk -v file="$file" 'END {
        printf "%-32s %8d bytes: %d text, %d data\n", file, $1 + $2, $1, $2 }'
done
