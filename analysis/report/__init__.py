"""One buffer, or a folder of them, as one page that answers: did it help, where, at what cost, can I believe it,
and what did it change in the process?

`build_page` makes the page; all statistics are those of `analysis.comparison` and `analysis.verdict`.
"""

from analysis.report.page import Page, build_page
from analysis.report.provenance import MadeBy

__all__ = ["MadeBy", "Page", "build_page"]
