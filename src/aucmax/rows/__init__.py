"""Where rows live and how they are checked: arrays, CSR matrices, mapped and streamed files."""
