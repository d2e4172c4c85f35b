"""python -m shapedp."""

import sys

from shapedp.cli import main

sys.exit(main())
