"""Training: the loop, runs, measurements, pictures and reports. `README.md` lists the modules."""
