# cornu serve: TensorFlow Serving's REST interface, as its documents show it, its messages and
# status codes, its bounds, versions that come and go, and how it ends. Whether the numbers are
# cornu_predict's is tests/examples/test_serve.c's business.
root=$PWD
. tests/checks.sh
. "$root/tests/examples/serving.sh"

# ---- The command line ----

refuses() { # refuses STATUS MESSAGE ARGUMENT...
    "$serve" serve "${@:3}" >out 2>err </dev/null
    [ $? = "$1" ] && grep -q -- "$2" err
}
check "no model" refuses 2 'expected --models DIR or --model NAME=PATH'
check "a model without a name" refuses 2 'model is "m.keras", expected NAME=PATH' --model m.keras
check "a name with a colon" refuses 2 'expected NAME=PATH' --model a:b=m.keras
check "a label without a number" refuses 2 'expected NAME:LABEL=N' --model a=b --label a:best=x
# Of the libraries that cornu loads only the server needs this one.
mkdir lib
soname=$(sed -n 's/.*CORNU_MICROHTTPD="\(.*\)".*/\1/p' "$programs/http")
echo "no library" >"lib/$soname"
without_library() {
    LD_LIBRARY_PATH=$folder/lib refuses 1 \
        "^cornu serve: libmicrohttpd cannot be loaded (.*$soname: .*); install libmicrohttpd" \
        --model m=m.keras && [ ! -s out ] &&
        LD_LIBRARY_PATH=$folder/lib "$serve" summary mnist_cnn >out 2>err
}
check "without libmicrohttpd it says what to install, and other commands run" without_library
not_linked() { ! readelf -d "$serve" | grep -i microhttpd >err; }
check "it is not linked with it" not_linked
check "a model that is not there" refuses 1 'no.such has no version' --model a=no.such
printf nothing >broken.safetensors
check "a model that is damaged" refuses 1 'cannot serve a version 1' --model a=broken.safetensors
check "a folder that is not there" refuses 1 'cannot read the folder nowhere' --models nowhere
half_plus half_plus_three.safetensors 3
check "an address that is none" refuses 1 'address 1.2.3.4.5' \
    --address 1.2.3.4.5 --model half=half_plus_three.safetensors

# ---- The examples of api_rest.md ----

half_plus models/half_plus_three/00000122.keras 0   # a leading zero, and not such a file
half_plus models/half_plus_three/123/model.safetensors 3
half_plus models/half_plus_three/7/model.safetensors 7
half_plus models/.hidden/1/model.safetensors 1
model models/classes/1.safetensors 3 2 0 \
    ', "notes": "{\"class_names\": [\"cat\", \"dog\", \"cow\"]}"'
model models/matrix/1/model.safetensors '2, 2' 1 0
begin --models models --label half_plus_three:stable=7 --max-body 0.1 --timeout 20 ||
    { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
three=half_plus_three
check "predict, rows" post 200 '\{ "predictions": \[3.5, 4.0, 5.5 \] \}' \
    '{"instances": [1.0,2.0,5.0]}' $three:predict
check "predict, columns" post 200 '\{ "outputs": \[3.5, 4.0, 5.5\] \}' \
    '{"inputs": [1.0,2.0,5.0]}' $three:predict
check "predict, with the axis of extent 1" post 200 '"predictions": \[\[3.5\], \[4.0\] \]' \
    '{"instances": [[1.0],[2.0]]}' $three:predict
check "predict, by name" post 200 '"predictions": \[3.5 \]' \
    '{"instances": [{"x": 1}]}' $three:predict
check "predict, columns by name" post 200 '"outputs": \[3.5\]' \
    '{"inputs": {"x": [1]}}' $three:predict
check "predict, NaN and Infinity" post 200 '"predictions": \[NaN, Infinity, -Infinity \]' \
    '{"instances": [NaN, Infinity,-Infinity], "ignored": "NaN \" Infinity"}' $three:predict
check "what follows the object is refused" post 400 \
    'The document root must not be followed by other values. at offset: 19' \
    '{"instances": [1]} {}' $three:predict
check "a number beyond the largest float" post 400 \
    'Cannot convert JSON value: 1e39 to float without loss of precision.' \
    '{"instances": [[1e39]]}' $three:predict
check "a whole number that floats lack" post 400 \
    'Cannot convert JSON value: -16777216 to float' '{"inputs": [-16777216]}' $three:predict
check "the largest of both" post 200 '\[1.70141.*e\+38, 8.38861e\+06 \]' \
    '{"instances": [3.4028234e38, 16777215]}' $three:predict
check "a number beyond the largest double" post 400 'Number too big to be stored in double' \
    '{"instances": [1e400]}' $three:predict
check "a version" post 200 '"predictions": \[7.5 \]' \
    '{"instances": [1.0]}' $three/versions/7:predict
check "a label" post 200 '"predictions": \[7.5 \]' \
    '{"instances": [1.0]}' $three/labels/stable:predict
check "an escaped name" post 200 '3.5' '{"instances": [1]}' half%5Fplus%5Fthree:predict
check "regress" post 200 '\{ "results": \[3.5, 4.0\] \}' '{"signature_name":
    "tensorflow/serving/regress", "examples": [{"x": 1.0}, {"x": 2.0}]}' $three:regress
check "regress, with a context" post 200 '"results": \[3.5\]' \
    '{"context": {"x": 1.0}, "examples": [{}]}' $three:regress
check "classify" post 200 '"results": \[\[\["cat", 2.0\], \["dog", 4.0\], \["cow", 0.2\]\]' \
    '{"examples": [{"x": [1, 2, 0.1]}]}' classes:classify
check "classify without names" post 200 '"results": \[\[\["", 3.5\]\] \]' \
    '{"examples": [{"x": 1}]}' \
    $three:classify
check "status" get 200 '"version": "123", "state": "AVAILABLE", "status": \{ "error_code": "OK",
    "error_message": "" \}' /v1/models/$three
check "status of a version" get 200 '^\{ "model_version_status": \[ \{ "version": "7"' \
    /v1/models/$three/versions/7
check "status of a label" get 200 '^\{ "model_version_status": \[ \{ "version": "7"' \
    /v1/models/$three/labels/stable
check "metadata" get 200 \
    '"name": "half_plus_three", .*"version": "123" .*"serving_default": \{ "inputs": \{
    "x": \{ "dtype": "DT_FLOAT", .*"size": "-1"' /v1/models/$three/metadata
check "metadata has the other signatures" get 200 '"tensorflow/serving/regress"' \
    /v1/models/$three/metadata

# ---- Messages and codes ----

check "a model that is unknown" post 404 'Servable not found for request: Latest\(half\)' \
    '{"instances": [1.0,5.0]}' half:predict
check "a version that is unknown" post 404 'request: Specific\(half_plus_three, 99\)' \
    '{"instances": [1]}' $three/versions/99:predict
check "a label that is unknown" post 400 'Unrecognized servable version label: best' \
    '{"instances": [1]}' $three/labels/best:predict
check "status of an unknown model" get 404 'Could not find any versions of model half"' \
    /v1/models/half
check "status of an unknown version" get 404 'Could not find version 99 of model half_plus_three' \
    /v1/models/$three/versions/99
check "no model" get 400 'Missing model name in request' /v1/models
for path in foo models/a/b models/a:predict models/a/version/50:predict models/a/metadata/x; do
    check "GET /v1/$path" get 400 'Malformed request: GET /v1/' "/v1/$path"
done
for path in a/version/5:regress a/versions/X:regress a/metadata a/versions/5/labels/b:regress \
    a:guess; do
    check "POST $path" post 400 'Malformed request: POST /v1/models/' '{}' $path
done
check "a version that is too large" post 400 'Failed to convert version: 18446744073709551615' \
    '{}' \
    a/versions/18446744073709551615:regress
check "another method" asks 400 'Malformed request: DELETE' -X DELETE "$url/v1/models/$three"
check "another path" get 404 'Not found' /index.html
check "an empty body" post 400 'JSON Parse error: The document is empty' '' $three:predict
check "no JSON" post 400 'JSON Parse error: Invalid value' 'instances = [1, 2]' $three:predict
check "half of JSON" post 400 'Missing a comma or \] after an array element. at offset: ' \
    '{"instances": [1, 2' $three:predict
check "a list" post 400 'JSON Value: \[1, 2\] Is not object' '[1, 2]' $three:predict
check "no key" post 400 "Missing 'inputs' or 'instances' key" '{"x": [1]}' $three:predict
check "both keys" post 400 "expecting only one of 'inputs' or 'instances'" \
    '{"instances": [1], "inputs": [1]}' $three:predict
check "no list" post 400 \
    "Expecting 'instances' to be an list/array" '{"instances": 1}' $three:predict
check "an empty list" post 400 "No values in 'instances' array" '{"instances": []}' $three:predict
check "strings for numbers" post 400 \
    'Value: .\"x.\" Type: String is not of expected type: float' '{"instances": ["x"]}' \
    $three:predict
check "bytes for numbers" post 400 'Type: Object is not of expected type: float' \
    '{"instances": [{"b64": "AAAA"}]}' $three:predict
check "a signature that is a number" post 400 "'signature_name' key must be a string value" \
    '{"signature_name": 100}' $three:predict
check "a signature that is unknown" post 400 'Serving signature name: .\"x.\" not found' \
    '{"signature_name": "x", "instances": [1]}' $three:predict
check "rows of two lengths" post 400 \
    "element: 1 of 'instances' list. Error: INVALID_ARGUMENT: Expecting
    tensor size: 3 but got: 2" '{"instances": [[1,2,3],[1,2]]}' classes:predict
check "a list within a row" post 400 'found at incorrect level|unexpected level' \
    '{"instances": [[1,2,[3]]]}' classes:predict
check "a row that is too short" post 400 'Input .\"x.\" has shape \[1,2\], expected \[-1,3\]' \
    '{"instances": [[1,2]]}' classes:predict
check "ragged columns" post 400 'list at unexpected size: 1 at level: 1 expected size: 3' \
    '{"inputs": [[1,2,3],[1]]}' classes:predict
check "an unknown name" post 400 'does not have named input: z' \
    '{"instances": [{"z": 1}]}' $three:predict
check "a missing name" post 400 \
    "Missing named input: x in 'inputs'" '{"inputs": {"z": 1}}' $three:predict
check "objects and values" post 400 'Expecting object but got list at item 1' \
    '{"instances": [{"x": 1}, 2]}' $three:predict
check "values and objects" post 400 'Expecting value/list but got object at item 1' \
    '{"instances": [2, {"x": 1}]}' $three:predict
check "a scalar for columns" post 400 'has shape \[\], expected' '{"inputs": 1}' $three:predict
check "no examples" post 400 "key 'examples' is expected" '{}' classes:classify
check "an example that is none" post 400 'Example must be JSON object but got JSON Number' \
    '{"examples": [1]}' classes:classify
check "a missing feature" post 400 'Feature: x \(data type: float\) is required' \
    '{"examples": [{"y": 1}]}' classes:classify
check "a feature that is too short" post 400 'Values size: 1 but output shape: \[3\]' \
    '{"examples": [{"x": 1}]}' classes:classify
check "a null" post 400 'unexpected JSON type: Null' '{"examples": [{"x": null}]}' classes:classify
check "three numbers are not a regression" post 400 \
    'either \[batch_size\] or \[batch_size, 1\] but got \[-1,3\]' \
    '{"examples": [{"x": [1,2,3]}]}' classes:regress
check "a matrix is not a list of classes" post 400 '\[batch_size num_classes\] but got \[-1,2,2\]' \
    '{"examples": [{"x": [1,2,3,4]}]}' matrix:classify
check "features are flat" post 200 '\[\[\[1.0, 2.0\], \[3.0, 4.0\]\]' \
    '{"instances": [[[1,2],[3,4]]]}' matrix:predict

# ---- Bounds ----

head -c 100000000 /dev/zero | tr '\0' ' ' >large
check "100 MB" asks 413 'too large, expected at most 0.1 MiB' --data-binary @large \
    "$url/v1/models/$three:predict"
check "0.2 MB by a client that does not ask" asks 413 'too large' -H Expect: \
    --data-binary "@-" "$url/v1/models/$three:predict" < <(head -c 200000 large)
check "0.2 MB in chunks" asks 413 'too large' -H Expect: -H 'Transfer-Encoding: chunked' \
    --data-binary "@-" "$url/v1/models/$three:predict" < <(head -c 200000 large)
deep() { printf '{"instances": %s%s}' "$(printf '[%.0s' $(seq $1))" "$(printf ']%.0s' $(seq $1))"; }
check "9 lists" post 400 'unexpected level|has shape' "$(deep 9)" $three:predict
check "3,000 lists" post 400 'nested too deep' "$(deep 3000)" $three:predict
cut() { # clients that leave in the middle of a request, whose connections end at once
    local i
    for i in 1 2 3 4 5 6 7 8 9 10; do
        connect || return 1
        printf 'POST /v1/models/%s:predict HTTP/1.1\r\nContent-Length: 100\r\n\r\n{' $three >&9
        exec 9>&-
    done
    wait_for get 200 'cornu_serve_connections\{\} 1 ' /monitoring/prometheus/metrics
}
check "requests that are cut off" cut
check "figures" get 200 \
    ':tensorflow:serving:request_count\{model_name="half_plus_three",status="OK"\} [1-9]' \
    /monitoring/prometheus/metrics
check "figures of latency" get 200 \
    'request_latency_count\{model_name="half_plus_three",API="Predict",entrypoint="REST"\}' \
    /monitoring/prometheus/metrics
no_unknown() { get 200 . /monitoring/prometheus/metrics && ! grep -q '"half"' line; }
check "no figures by names that clients make up" no_unknown

# ---- Versions ----

answers() { post 200 "$1" '{"instances": [1]}' $three:predict 2>/dev/null; }
half_plus models/$three/124/model.safetensors 4
check "a new version is served" wait_for answers '\[4.5 \]'
check "the old one is not" get 200 '"version": "123", "state": "END"' /v1/models/$three
check "the labelled one is" post 200 7.5 '{"instances": [1]}' $three/labels/stable:predict
mkdir models/$three/125 && printf junk >models/$three/125/model.keras
fails() {
    get 200 '"version": "125", "state": "END",
        "status": \{ "error_code": "[A-Z_]+", "error_message": "[^"]' /v1/models/$three
}
check "one that is damaged is not" wait_for fails
check "then the one before stays" answers '\[4.5 \]'
rm models/$three/125/model.keras && half_plus models/$three/125/model.safetensors 5
check "when it is mended, it is" wait_for answers '\[5.5 \]'
half_plus models/$three/125/model.safetensors 6
check "a file that is replaced is loaded again" wait_for answers '\[6.5 \]'
half_plus models/new/1.safetensors 1
check "a new model" wait_for post 200 1.5 '{"instances": [1]}' new:predict
rm -r models/new
check "one that is removed" wait_for post 404 'Latest\(new\)' '{"instances": [1]}' new:predict

check "SIGTERM ends it with 0" end
check "nothing but versions was logged" eval '! grep -v " serv" log >err'

# ---- Full queues, SIGTERM under load ----

# A thread takes one batch; 60 ms it waits for others, of which one more may wait.
begin --model half=half_plus_three.safetensors --threads 1 --queue 1 --batch-timeout 60 &&
    for i in $(seq 20); do
        [ "$i" = 1 ] || echo next
        printf '%s\n' "url = \"$url/v1/models/half:predict\"" 'output = /dev/null' \
            'data = "{\"instances\": [1]}"' 'write-out = "%{http_code}\n"'
    done >requests
full() {
    curl -s -Z --parallel-max 20 -K requests >codes 2>err
    [ "$(sort -u codes | tr '\n' ' ')" = "200 503 " ] && [ "$(wc -l <codes)" = 20 ]
}
check "a queue that is full" full
check "SIGINT ends it with 0, too" end INT

begin --model half=half_plus_three.safetensors --timeout 0.2 --batch-timeout 300
check "a request that waits too long" post 504 'Timed out after' '{"instances": [1]}' half:predict
is_closed() { local line; ! read -r -t 60 line <&9 && [ $? -le 128 ]; }
check "a client that says nothing" eval 'connect && is_closed'
trickles() {
    connect || return 1
    { printf 'GET / HTTP/1.1\r\nA: '; while sleep 0.1 && printf a; do :; done; } >&9 2>err &
    is_closed
}
check "a client that is slow" trickles
exec 9>&-
end

# Clients that go on until they are refused; none may get half an answer, or none.
client() { # keeps the connection, as curl does with several URLs
    local status=0
    while [ $status = 0 ]; do
        curl -s -o /dev/null -o /dev/null -d '{"instances": [1]}' -w '%{http_code}\n' \
            "$url/v1/models/half:predict" "$url/v1/models/half:predict"
        status=$?
    done
    echo "ended with $status"
}
stops() {
    local clients=() c
    begin --model half=half_plus_three.safetensors || return 1
    for c in 1 2 3 4; do client >codes$c 2>&1 & clients+=($!); done
    sleep 0.5
    end || return 1
    wait "${clients[@]}"
    cat codes? | sort | uniq -c >err
    # 7: cannot connect. Anything else is a request that was taken and not answered.
    [ "$(grep -hv '^200' codes? | sort -u | tr '\n' ' ')" = "000 ended with 7 " ] &&
        [ "$(grep -c 200 codes1)" -gt 2 ]
}
check "SIGTERM under load loses no request" stops

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
