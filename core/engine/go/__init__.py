"""One `go`: its limits, loading while its clock runs, the search beside a timer, and the client's signals."""
