"""python -m shapedp_check."""

from shapedp_check.cli import main

raise SystemExit(main())
