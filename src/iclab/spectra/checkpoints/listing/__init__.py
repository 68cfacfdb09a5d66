"""Listing of checkpoints: one entry of a folder, the shards of an index, and the order of steps."""

from iclab.spectra.checkpoints.listing.found import Found
from iclab.spectra.checkpoints.listing.indices import beside_index, sharded
from iclab.spectra.checkpoints.listing.ordering import in_order

__all__ = ["Found", "beside_index", "in_order", "sharded"]
