// benchmarks/run builds with the language version of the Go that is installed.
module weft.invalid/benchmarks

go 1.19
