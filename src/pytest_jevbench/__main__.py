"""`python -m pytest_jevbench` is `pytest-jevbench`."""

import sys

from .cli import main

sys.exit(main())
