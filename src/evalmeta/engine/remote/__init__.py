"""Cases that are asked and judged in other processes, which may run on other machines."""
