"""What several commands share: options, tables, errors."""
