-- wrk's side of check_serve.sh: sends bodies in turn, and checks each answer, byte for byte.
local threads = {}

function setup(thread) table.insert(threads, thread) end

local function read(path)
    local file = assert(io.open(path))
    local text = file:read("*a")
    file:close()
    return text
end

function init(arguments)
    answers, refused, wrong = 0, 0, 0
    path, count, bodies, expected, at = arguments[1], tonumber(arguments[2]), {}, {}, 0
    for i = 1, count do
        bodies[i] = read("body" .. i)
        expected[read("answer" .. i)] = true
    end
end

function request()
    at = at % count + 1
    return wrk.format("POST", path, { ["Content-Type"] = "application/json" }, bodies[at])
end

function response(status, headers, body)
    answers = answers + 1
    if status ~= 200 then refused = refused + 1
    elseif not expected[body] then wrong = wrong + 1 end
end

function done(summary, latency)
    local all, bad, other, errors = 0, 0, 0, summary.errors
    for _, thread in ipairs(threads) do
        all, bad = all + thread:get("answers"), bad + thread:get("refused")
        other = other + thread:get("wrong")
    end
    print(string.format("%d answers in %.1f s, %.0f a second; " ..
                        "p50 %.2f ms, p99 %.2f ms, longest %.2f ms", all, summary.duration / 1e6,
                        all / summary.duration * 1e6, latency:percentile(50) / 1000,
                        latency:percentile(99) / 1000, latency.max / 1000))
    print(string.format("%d not with status 200, %d with other numbers than alone, %d errors", bad,
                        other, errors.connect + errors.read + errors.write + errors.timeout))
end
