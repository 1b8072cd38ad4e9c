# Checks how the files of the library depend on each other:
#
#     bash tests/circles.sh BUILD OBJECT...     OBJECT: the library's objects, which nm reads
#
# A file depends on the file that defines a symbol it uses. Files in a circle can only be understood
# together, so each circle is printed with its symbols; a circle of more than three files, or of
# folders, is an error. Dependencies of tables do not count: a table is a file that defines
# constants and no functions, such as the list of all layers.
#
# A file in the folder on the left may neither call nor include one on the right. FOLDER/. is that
# folder without those below it.
rules='
device            tensor datasets nn models
device/.          device/host device/cpu device/tpu device/reference
device/ops        device/host device/cpu device/tpu device/reference
device/host       device/cpu device/tpu device/reference
device/cpu        device/tpu device/reference
device/tpu        device/cpu device/reference
device/reference  device/host device/cpu device/tpu
tensor            datasets nn models
tensor/.          tensor/ops tensor/functions
tensor/ops        tensor/functions
datasets          tensor nn models
nn                models
nn/fields         nn/layers nn/weights nn/losses nn/metrics nn/optimizers nn/model nn/training nn/saving
nn/formats        nn/fields
nn/weights        nn/losses nn/metrics nn/optimizers nn/model nn/training nn/saving nn/callbacks
nn/layers         nn/losses nn/metrics nn/optimizers nn/model nn/training nn/saving nn/callbacks
nn/losses         nn/model nn/training nn/saving nn/callbacks
nn/metrics        nn/model nn/training nn/saving nn/callbacks
nn/optimizers     nn/model nn/training nn/saving nn/callbacks
nn/model          nn/saving nn/callbacks
nn/training       nn/saving nn/callbacks
nn/saving         nn/callbacks
nn/lite           nn/callbacks
nn/saving         nn/lite
nn/callbacks      nn/estimator
nn/saving         nn/estimator
nn/training       nn/estimator
nn/model          nn/estimator
nn/pictures       nn/estimator
nn/formats        nn/layers nn/weights nn/losses nn/optimizers nn/model nn/training nn/callbacks
nn/formats        nn/saving nn/lite
nn/model          nn/explain
nn/training       nn/explain
nn/saving         nn/explain
nn/lite           nn/explain
nn/explain        nn/callbacks nn/estimator
nn/terminal       nn/layers nn/model nn/training nn/saving nn/callbacks
'
build=$1
shift
[ $# != 0 ] || { echo "circles: expected BUILD OBJECT..., no objects given" >&2; exit 2; }
{
    echo "$rules" | sed 's/^/rule /'
    nm -A "$@" | sed "s,^$build/obj/,symbol ,"
    find device tensor datasets nn models -name '*.[ch]' -exec grep -H '^ *# *include *"' {} + |
        sed 's/^/include /'
} | LC_ALL=C awk '
    function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }

    # PATH of an include in FILE, relative to the top folder.
    function resolve(file, path,    from) {
        from = folder_of(file)
        while (sub(/^\.\.\//, "", path)) sub(/(^|\/)[^\/]*$/, "", from)
        return from == "" || path ~ /^(device|tensor|datasets|nn|models)\// ? path : from "/" path
    }

    # Whether FILE is in FOLDER or below it; "FOLDER/.": in FOLDER itself.
    function lies_in(file, folder) {
        if (sub(/\/\.$/, "", folder)) return folder_of(file) == folder
        return index(file, folder "/") == 1
    }

    function check_direction(from, to, how,    i) {
        if (is_table(from)) return
        for (i = 1; i <= rule_count; i++)
            if (lies_in(from, lower[i]) && lies_in(to, upper[i])) {
                print "circles: " from " " how ": " lower[i] " may not know " upper[i] | "sort"
                bad = 1
                return
            }
    }

    function is_table(file) { return (file in constants) && !(file in more_than_constants) }

    function arrow(from, to) {
        if ((from, to) in arrows) return
        arrows[from, to] = 1
        next_of[from, ++degree[from]] = to
    }

    # Tarjan, "Depth-First Search and Linear Graph Algorithms", 1972: group_of[node] for each node,
    # members[group] as "a b c", size[group].
    function visit(node,    i, to) {
        found[node] = low[node] = ++visits
        stack[++depth] = node
        for (i = 1; i <= degree[node]; i++) {
            to = next_of[node, i]
            if (!(to in found)) visit(to)
            if (!(to in group_of) && low[to] < low[node]) low[node] = low[to]
        }
        if (low[node] != found[node]) return
        groups++
        do {
            to = stack[depth--]
            group_of[to] = groups
            members[groups] = members[groups] to " "
            size[groups]++
        } while (to != node)
    }

    function report(what, most,    g, i, j, k, n, names, from, to) {
        for (g = 1; g <= groups; g++) {
            if (size[g] < 2) continue
            n = split(members[g], names, " ")
            for (i = 2; i <= n; i++)
                for (j = i; j > 1 && names[j] < names[j - 1]; j--) {
                    k = names[j]; names[j] = names[j - 1]; names[j - 1] = k
                }
            print (size[g] > most ? "circles: " : "") size[g] " " what " in a circle" \
                  (size[g] > most ? ", expected at most " most ":" : ":")
            if (size[g] > most) bad = 1
            for (i = 1; i <= n; i++)
                for (j = 1; j <= n; j++)
                    if ((names[i], names[j]) in arrows)
                        print "    " names[i] " -> " names[j] ": " ties[names[i], names[j]]
        }
    }

    function forget() {
        split("", arrows); split("", next_of); split("", degree); split("", found)
        split("", low); split("", group_of); split("", members); split("", size)
        groups = visits = depth = 0
    }

    $1 == "rule" {
        for (i = 3; i <= NF; i++) { lower[++rule_count] = $2; upper[rule_count] = $i }
    }

    # symbol FILE[.ISA].o:ADDRESS LETTER NAME, without an address if it is undefined
    $1 == "symbol" {
        file = $2
        sub(/(\.[a-z0-9]+)?\.o:.*/, ".c", file)
        files[file] = 1
        letter = $(NF - 1)
        if (letter == "U") needed[file, $NF] = 1
        else if (letter ~ /[A-Z]/) home[$NF] = file
        if (letter ~ /[DdRrVv]/) constants[file] = 1
        else if (letter != "U") more_than_constants[file] = 1
    }

    # include FILE:#include "PATH"
    $1 == "include" {
        file = $2
        sub(/:.*/, "", file)
        path = $0
        sub(/^[^"]*"/, "", path)
        sub(/".*/, "", path)
        includes[file, resolve(file, path)] = 1
    }

    END {
        for (key in includes) {
            split(key, of, SUBSEP)
            check_direction(of[1], of[2], "includes " of[2])
        }
        for (key in needed) {
            split(key, of, SUBSEP)
            from = of[1]
            to = home[of[2]]
            if (to == "" || to == from || is_table(from)) continue
            arrow(from, to)
            check_direction(from, to, "calls " of[2] " of " to)
            if (++tied[from, to] <= 3)
                ties[from, to] = ties[from, to] (tied[from, to] > 1 ? ", " : "") of[2]
            else if (tied[from, to] == 4)
                ties[from, to] = ties[from, to] ", ..."
        }
        close("sort")
        for (file in files) if (!(file in found)) visit(file)
        report("files", 3)
        for (key in arrows) {
            split(key, of, SUBSEP)
            pairs[folder_of(of[1]), folder_of(of[2])] = of[1] " -> " of[2]
        }
        forget()
        for (key in pairs) {
            split(key, of, SUBSEP)
            if (of[1] == of[2]) continue
            arrow(of[1], of[2])
            ties[of[1], of[2]] = pairs[key]
        }
        for (file in files) if (!(folder_of(file) in found)) visit(folder_of(file))
        report("folders", 1)
        exit bad
    }'
