"""The paper's data sets: found on disk or fetched, verified, and split as the paper splits them."""

from aucmax.paper.data.downloads import DataMissingError, dataset_status, fetch
from aucmax.paper.data.registry import DATASETS, Dataset
from aucmax.paper.data.split import Split, load_dataset

__all__ = [
    "DATASETS",
    "DataMissingError",
    "Dataset",
    "Split",
    "dataset_status",
    "fetch",
    "load_dataset",
]
