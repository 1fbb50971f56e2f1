"""The game store: format, writer, reader, what it says about itself."""
