// benchmarks/run replaces the language version by that of the Go that is installed.
module weft.invalid/benchmarks

go 1.19
