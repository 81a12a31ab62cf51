"""The checks. Each file has one function, ``look``, which yields what it finds and nothing if all is in order."""
