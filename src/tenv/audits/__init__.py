"""The libraries of a built torch, a wheel or a folder, and the machines that they run on."""
