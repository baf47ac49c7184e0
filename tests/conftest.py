"""Shapes and types in signatures are checked at run time in every test."""

from jaxtyping import install_import_hook

import tests.typechecking

install_import_hook("sgdlimits", f"{tests.typechecking.__name__}.checked")
