"""Find or fetch the paper's data sets, verify them, and split them as the paper does."""

from aucmax.paper.data.downloads import dataset_status, fetch
from aucmax.paper.data.registry import DATASETS, Dataset
from aucmax.paper.data.split import DataMissingError, Split, load_dataset

__all__ = ["DATASETS", "DataMissingError", "Dataset", "Split"]
__all__ += ["dataset_status", "fetch", "load_dataset"]
