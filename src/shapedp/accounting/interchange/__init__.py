"""To and from other libraries: privacy-loss distributions and events of `dp_accounting`, measurements of OpenDP."""

from shapedp.accounting.interchange.events import from_event, to_event
from shapedp.accounting.interchange.opendp import from_opendp, to_opendp
from shapedp.accounting.interchange.pld import from_dp_accounting, to_dp_accounting

__all__ = ["from_dp_accounting", "from_event", "from_opendp", "to_dp_accounting", "to_event", "to_opendp"]
