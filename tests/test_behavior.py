"""Tables of behavior as common loggers write them."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from iclab.inspection import behavior

LIGHTNING = """epoch,step,train_loss,val_loss
0,9,2.5,
0,9,,2.4
1,19,1.5,
1,19,,1.6
"""
TENSORBOARD = "Wall time,Step,Value\n1700000000.5,0,2.5\n1700000001.5,10,1.5\n"
WANDB = (
    '"Step","run-3 - loss","run-3 - loss__MIN","run-3 - loss__MAX"\n"0","2.5","2.4","2.6"\n"10","1.5","1.4","1.6"\n'
)
HISTORY = "_step,_timestamp,_runtime,trainer/global_step,loss\n0,1.7e9,0.1,5,2.5\n1,1.7e9,0.2,10,1.5\n"


def read(text: str, tmp_path: Path) -> behavior.Behavior:
    (tmp_path / "log.csv").write_text(text)
    return behavior.read(tmp_path / "log.csv")


def test_two_rows_of_a_step_are_one(tmp_path: Path) -> None:
    found = read(LIGHTNING, tmp_path)
    assert found.steps == (9, 19)
    assert_array_equal(found.columns["train_loss"], [2.5, 1.5])
    assert_array_equal(found.columns["val_loss"], [2.4, 1.6])
    assert_array_equal(found.columns["epoch"], [0, 1])


@pytest.mark.parametrize(("text", "column"), [(TENSORBOARD, "Value"), (WANDB, "run-3 - loss")])
def test_step_may_be_capitalized_and_times_and_ranges_are_left_out(text: str, column: str, tmp_path: Path) -> None:
    found = read(text, tmp_path)
    assert found.steps == (0, 10)
    assert list(found.columns) == [column]
    assert_array_equal(found.columns[column], [2.5, 1.5])


@pytest.mark.parametrize("name", ["global_step", "_step", "iteration", "iter", "STEP", "trainer/global_step"])
def test_the_counter_of_steps_has_other_names(name: str, tmp_path: Path) -> None:
    assert read(f"{name},a\n3,1\n5,2\n", tmp_path).steps == (3, 5)


def test_a_column_step_goes_before_other_counters(tmp_path: Path) -> None:
    found = read("step,global_step,a\n3,30,1\n5,50,2\n", tmp_path)
    assert found.steps == (3, 5)
    assert_array_equal(found.columns["global_step"], [30, 50])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HISTORY, "must name one column step.*Call the column of training steps step"),
        ("Step,iter,a\n1,2,3\n", "must name one column step"),
        ("step,a\n1,2\n1,3\n", r"step 'log.csv'|1 comes twice with a value of 'a', in rows 2 and 3. Keep one"),
        ("step,a,b\n1,2,\n1,,4\n1,5,\n", "in rows 2 and 4"),
        ("step,name\n1,warm\n", "row 2, column 'name' of 'log.csv' must be a number.*Leave out columns of text"),
    ],
)
def test_what_is_not_plain_is_refused_with_the_remedy(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        read(text, tmp_path)


def test_equal_values_of_a_step_are_no_conflict_and_steps_keep_their_order(tmp_path: Path) -> None:
    found = read("step,a,b\n7,1,\n3,4,\n7,1,2\n", tmp_path)
    assert found.steps == (7, 3)
    assert_array_equal(found.columns["b"], [2, np.nan])
