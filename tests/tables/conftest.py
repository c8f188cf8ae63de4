import pytest
from mixed_tables import people


@pytest.fixture
def frame():
    return people()
