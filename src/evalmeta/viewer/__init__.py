"""Pages over a project's store: its tests, runs, cases, comparisons, trends and org, served or written as files.

The pages need no JavaScript for reading. `static` contains htmx and uPlot as their authors publish them, with licences.
"""
