"""The test runner behind `make test`: testbed/run.py is its command line."""
