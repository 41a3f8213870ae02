"""Long games as text games. Importing this package loads no simulator."""
