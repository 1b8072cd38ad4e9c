# Public functions without a comment of their own, above the prototype or behind it on its line:
#
#     awk -f tests/prototypes.awk HEADER...
#
# cornu_NAME_from has the comment of its config where that ends right before, or of the macro
# cornu_NAME above it. A heading, "/* ---- Building ---- */", describes no function.
function end_of_prototype() {
    if (!commented) { print place ": " name " has no comment of its own"; bad = 1 }
    name = ""
    commented = config = 0
}
FNR == 1            { name = ""; commented = config = open = continued = 0 }
open                { open = !/\*\//; next }
/^\/\*/             { commented = !/^\/\* ----/; open = !/\*\//; next }
continued           { continued = /\\$/; next }
/^#define cornu_/   { continued = /\\$/; next }
/^(typedef )?struct .*[{]$/ { of_struct = commented }
/^}/                { config = of_struct; commented = of_struct = 0; next }
/^typedef [^({]*;$/ { config = commented; next }
/^[A-Za-z].*[ *]cornu_[a-z0-9_]+[(]/ && !/^(typedef|static) / {
    name = $0
    sub(/[(].*/, "", name)
    sub(/.*[ *]/, "", name)
    place = FILENAME ":" FNR
    if (name ~ /_from$/ && config) commented = 1
}
name != "" {
    if (/\/\*/) { commented = 1; open = !/\*\// }
    if (/;/) end_of_prototype()
    next
}
/^$/                { commented = 0; next }
                    { commented = config = 0 }
END                 { exit bad }
