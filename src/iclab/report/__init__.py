"""One self-contained page of studies: figures inline, numbers as downloads, nothing from outside."""

from iclab.report.document import MEDIA, Download, Entry, csv, files_of, page

__all__ = ["MEDIA", "Download", "Entry", "csv", "files_of", "page"]
