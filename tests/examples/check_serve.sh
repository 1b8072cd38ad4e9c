# check_serve.sh BUILD SECONDS: cornu serve with 64 connections for so long, by wrk, on requests of
# one image for mnist_convnet, while new versions of the model come and old ones go. Each answer
# must be what the request gets by itself. Prints rates and latencies, measured on this machine, on
# which wrk runs, too.
build=$(realpath "$1") seconds=$2
script=$(realpath tests/examples/check_serve.lua)
folder=$(mktemp -d) || exit 1
trap 'kill $server $versions 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
requests=50

"$build/cornu" train mnist_convnet --data synthetic --limit 600 --epochs 1 --verbose 0 \
    --save m.safetensors >log 2>&1 || { cat log; exit 1; }
mkdir -p models/m && cp m.safetensors models/m/1.safetensors
: >address
"$build/cornu" serve --models models --port 0 >address 2>log &
server=$!
for ((i = 0; i < 3000; i++)); do grep -q '^listening' address && break; sleep 0.02; done
url=$(sed -n 's/^listening on //p' address)
[ "$url" ] || { cat log; exit 1; }
for ((i = 1; i <= requests; i++)); do
    awk -v seed=$i 'BEGIN {
        srand(seed)
        printf "{\"instances\": [["
        for (h = 0; h < 28; h++) {
            printf h ? ",[" : "["
            for (w = 0; w < 28; w++) printf "%s%.3f", w ? "," : "", rand()
            printf "]"
        }
        printf "]]}"
    }' >body$i
    curl -s -d @body$i "$url/v1/models/m:predict" >answer$i
    grep -q predictions answer$i || { cat answer$i; exit 1; }
done

# Version after version of the same weights; each is moved into place.
for ((version = 2;; version++)); do
    sleep 2
    cp m.safetensors models/new && mv models/new models/m/$version.safetensors
    rm -f models/m/$((version - 2)).safetensors
done &
versions=$!
wrk -t 2 -c 64 -d "${seconds}s" --timeout 30s -s "$script" "$url" -- \
    /v1/models/m:predict $requests >answers || { cat answers; exit 1; }
kill $versions
tail -n 2 answers
echo "$(grep -c ': serving' log) versions of the model were served"
curl -s "$url/monitoring/prometheus/metrics" |
    sed -n 's/.*processed_batch_size_\(sum\|count\){} //p' |
    xargs | awk '{ printf "%.2f rows computed at once, in the mean\n", $1 / $2 }'
kill $server && wait $server || { echo "cornu serve ended with $?"; exit 1; }
grep -q '^0 not with status 200, 0 with other numbers than alone, 0 errors' answers
