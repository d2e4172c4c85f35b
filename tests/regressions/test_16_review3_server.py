"""Issue 16, second review by fresh eyes: a trigger in PostgreSQL took spends back, and only a later check noticed."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from tests.ledger import conftest
from tests.ledger.helpers import CAP, X, gaussian

from shapedp.ledger import Ledger, LedgerCorruptedError

server, postgres = conftest.server, conftest.postgres
BACK = """
CREATE FUNCTION back() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.totals = OLD.totals; NEW.entries = OLD.entries; NEW.events = OLD.events;
    NEW.chain = OLD.chain; NEW.marks = OLD.marks; NEW.seal = OLD.seal;
    RETURN NEW;
END $$;
CREATE TRIGGER back BEFORE UPDATE ON shapedp_dataset FOR EACH ROW EXECUTE FUNCTION back()
"""
FOREIGN = (
    BACK,
    "CREATE RULE nothing AS ON UPDATE TO shapedp_dataset DO INSTEAD NOTHING",
    "ALTER TABLE shapedp_entry ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE shapedp_document RENAME TO kept; CREATE VIEW shapedp_document AS SELECT * FROM kept",
)


@pytest.mark.parametrize("statement", FOREIGN, ids=["trigger", "rule", "policy", "view"])
def test_foreign_parts_of_a_server_are_refused(postgres: str, statement: str) -> None:
    ledger = Ledger.create(postgres, dataset="d", **CAP)
    with ledger.spend("d", gaussian(4)) as spend:
        spend.release(X)
    engine = sa.create_engine(postgres.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()
    with pytest.raises(LedgerCorruptedError, match="trigger"), ledger.spend("d", gaussian(4)):
        raise AssertionError("never reached")
    for use in (lambda: ledger.check("d"), lambda: Ledger.open(postgres), lambda: ledger.add("e", **_cap())):
        with pytest.raises(LedgerCorruptedError, match="trigger"):
            use()


def _cap() -> dict[str, object]:
    return {name: value for name, value in CAP.items() if name != "dataset"}
