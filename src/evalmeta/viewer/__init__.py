"""Pages over a project's store: its tests, runs, cases, comparisons, trends and org, served or written as files.

The pages need no JavaScript for reading: `static/view.js` only adds keys, filters while typing, and live updates.
"""
