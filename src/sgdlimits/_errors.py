"""What is raised for wrong input, in a module that imports nothing."""


class InputError(ValueError):
    """An argument that is not allowed; every other exception is a fault of ours."""

    __module__ = "sgdlimits"  # where users find it
