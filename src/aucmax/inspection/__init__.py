"""Looking into a fitted model: importances of columns, and displays."""
