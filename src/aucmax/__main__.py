"""``python -m aucmax``."""

from aucmax.cli import main

main()
