"""Profiles: everything that differs between CLIs, as data. The TOML files lie beside the code that reads them."""
