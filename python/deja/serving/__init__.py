"""What a recorded rank was given by its process groups, for code in a plain process."""
