"""What `deja doctor` asks the job's own Python."""
