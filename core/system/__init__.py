"""What the operating system gives and takes: files, processors, child processes, signals, terminals."""
